"""The words of a picture are numbers of its trace: two traces, two texts; and the stable ones name no seconds."""

from lt_core.base.trace import Level, Span, Trace
from lt_core.engine.costs import Unit
from lt_core.engine.simulate import simulate
from tests.typed import gpipe, typed

RING = "0: 0SEND0>1 1ADD0<1 1SEND1>1 0COPY1<1\n1: 1SEND0>0 0ADD0<0 0SEND1>0 1COPY1<0"
NEEDS = {"1SEND1>1": "0SEND0>1 1ADD0<1", "0COPY1<1": "0SEND0>1 1ADD0<1"}
NEEDS |= {"0SEND1>0": "1SEND0>0 0ADD0<0", "1COPY1<0": "1SEND0>0 0ADD0<0"}


class Moving(Unit):
    """Unit costs of messages of 40 bytes."""

    def nbytes(self, action):
        return 40 if action.peer >= 0 else 0


def test_a_pipeline():
    costs = Unit(by={"F": 1.0, "B": 2.0}, kept={"F": 1000, "B": -1000})
    assert simulate(gpipe(2, 2), costs).describe() == (
        "GPipe: 2 ranks, 16 actions (8 on compute, 4 on in, 4 on out), simulated. "
        "Rank 0's compute runs 0F0 0F1 0B1 0B0. "
        "It takes 9 s; rank 0's compute is busiest, 67% of that. Memory is highest on rank 0, 2 kB."
    )


def test_a_ring_of_two():
    trace = simulate(typed(RING, NEEDS, "ring"), Moving(alpha=0.5))
    trace.backend = "gloo"
    assert trace.describe() == (
        "ring: 2 ranks, 8 actions (4 on in, 4 on out), simulated over gloo. Each rank sends 80 bytes. "
        "Rank 0's out runs 0SEND0>1 1SEND1>1. It takes 1 s; rank 0's in is busiest, 100% of that."
    )


def test_twice_the_time_is_other_words_and_the_same_stable_ones():
    slow, quick = (simulate(typed(RING, NEEDS, "ring"), Moving(alpha=alpha)) for alpha in (0.5, 2.0))
    assert slow.describe() != quick.describe()
    assert slow.describe(stable=True) == quick.describe(stable=True)
    assert " s;" not in slow.describe(stable=True) and "80 bytes" in slow.describe(stable=True)


def test_uneven_senders_long_lanes_and_one_of_each():
    spans = [Span(0, "out", f"{k}SEND0>1", k, k + 1, 10) for k in range(12)] + [Span(1, "out", "0SEND0>0", 0, 1, 5)]
    said = Trace("t", spans).describe(stable=True)
    assert "Rank 0 sends most, 120 bytes of 125 in all." in said
    assert "runs 0SEND0>1 1SEND0>1 2SEND0>1 3SEND0>1 4SEND0>1 5SEND0>1 6SEND0>1 7SEND0>1 ... 11SEND0>1." in said
    assert Trace("t", spans[:1]).describe(stable=True).startswith("t: 1 rank, 1 action (1 on out), measured.")


def test_nothing_and_memory_alone():
    assert Trace("t").describe() == "t: nothing happened."
    assert "Memory is highest on rank 3, 2 kB." in Trace("t", levels=[Level(3, 0.0, "parameters", 2000)]).describe()
