"""The simulator meets closed forms exactly, whatever the order of the lanes, and its memory ends where it began."""

import ast
import gc
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lt_core.base.action import Action, Op
from lt_core.base.errors import ScheduleError
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Level
from lt_core.collectives import naive, ring
from lt_core.engine import simulate as module
from lt_core.engine.costs import Unit
from lt_core.engine.simulate import simulate
from tests.typed import gpipe, pipeline, typed

FB = Unit(by={"F": 1.0, "B": 2.0}, kept={"F": 1, "B": -1})
ONE_F_ONE_B = """
0: 0F0 0SEND_F0>1 0F1 0SEND_F1>1 1COPY_B0<1 0B0 0F2 0SEND_F2>1 1COPY_B1<1 0B1 1COPY_B2<1 0B2
1: 0COPY_F0<0 1F0 1B0 1SEND_B0>0 0COPY_F1<0 1F1 1B1 1SEND_B1>0 0COPY_F2<0 1F2 1B2 1SEND_B2>0
"""


def times(trace, rank, stream):
    return [(s.name, s.start_s, s.end_s) for s in trace.spans if (s.rank, s.stream) == (rank, stream)]


def test_one_stream_is_one_thing_at_a_time():
    trace = simulate(typed("0: 0F0 0B0 0F1"), FB)
    assert times(trace, 0, "compute") == [("0F0", 0, 1), ("0B0", 1, 3), ("0F1", 3, 4)]
    assert (trace.name, trace.clock, trace.makespan_s()) == ("typed", "simulated", 4)


def test_two_streams_run_side_by_side_unless_a_need_holds_them():
    free = simulate(typed("0: 0F0 0OUT0"), Unit(by={"F": 1.0, "OUT": 3.0}))
    held = simulate(typed("0: 0F0 0OUT0", {"0OUT0": "0F0"}), Unit(by={"F": 1.0, "OUT": 3.0}))
    assert (free.makespan_s(), held.makespan_s()) == (3, 4)


def test_a_transfer_starts_when_both_ends_can_and_ends_for_both():
    s = typed("0: 0F0 0SEND0>1\n1: 1B0 0ADD0<0 1F0", {"0SEND0>1": "0F0", "0ADD0<0": "1B0", "1F0": "0ADD0<0"})
    trace = simulate(s, Unit(by={"F": 1.0, "B": 2.0}, alpha=0.5, gamma=0.25))
    assert times(trace, 0, "out") == [("0SEND0>1", 2, 2.75)]
    assert times(trace, 1, "in") == [("0ADD0<0", 2, 2.75)]
    assert times(trace, 1, "compute")[1] == ("1F0", 2.75, 3.75)


def test_a_receiver_takes_one_message_at_a_time():
    s = typed("0: 0SEND0>2\n1: 1SEND0>2\n2: 1ADD0<1 0ADD0<0")
    assert times(simulate(s, Unit(alpha=1.0)), 2, "in") == [("1ADD0<1", 0, 1), ("0ADD0<0", 1, 2)]


@pytest.mark.parametrize(("stages", "batches", "seconds"), [(4, 8, 33), (4, 4, 21), (2, 4, 15), (8, 16, 69), (1, 1, 3)])
def test_gpipe_meets_its_law(stages, batches, seconds):
    trace = simulate(gpipe(stages, batches).check(), FB)
    assert trace.makespan_s() == (batches + stages - 1) * 3 == seconds
    assert trace.idle_fraction() == pytest.approx((stages - 1) / (batches + stages - 1))
    assert [trace.peak_bytes(r) for r in range(stages)] == [batches] * stages


def test_one_f_one_b_keeps_less_in_the_same_time():
    trace = simulate(pipeline(ONE_F_ONE_B).check(), FB)
    assert (trace.makespan_s(), [trace.peak_bytes(r) for r in range(2)]) == ((3 + 1) * 3, [2, 1])


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_the_ring_meets_its_law(size):
    trace = simulate(ring.schedule(size), Unit(alpha=1000.0, beta=4.0, gamma=1.0))
    assert trace.makespan_s() == 2 * (size - 1) * 1004 + (size - 1)


def of_rounds(rounds):
    """(sender, receiver, unit, count, verb) by round; an action needs its rank's actions of the round before."""
    lanes, needs, last = [[] for _ in range(8)], {}, [()] * 8
    for k, messages in enumerate(rounds):
        mine = {}
        for sender, receiver, unit, count, verb in messages:
            mine.setdefault(sender, []).append(Action(Op.SEND, unit, k, sender, receiver, count))
            mine.setdefault(receiver, []).append(Action(verb, unit, k, receiver, sender, count))
        for rank, actions in mine.items():
            lanes[rank] += actions
            needs |= dict.fromkeys(actions, last[rank])
            last[rank] = tuple(actions)
    return Schedule("rounds", tuple(map(tuple, lanes)), needs)


def to_one_and_back():
    """Everybody's eight chunks to rank 0, and back."""
    return of_rounds([[(r, 0, 0, 8, Op.ADD)] for r in range(1, 8)] + [[(0, r, 0, 8, Op.COPY)] for r in range(1, 8)])


def hierarchical():
    """Groups of four add up on their first rank, the two firsts exchange halves both ways, and all are told."""
    up = [[(m + j, m, 0, 8, Op.ADD) for m in (0, 4)] for j in (1, 2, 3)]
    middle = [[(0, 4, 0, 4, verb), (4, 0, 4, 4, verb)] for verb in (Op.ADD, Op.COPY)]
    down = [[(m, m + j, 0, 8, Op.COPY) for m in (0, 4)] for j in (1, 2, 3)]
    return of_rounds([*up, *middle, *down])


def test_a_transfer_occupies_its_senders_out_and_its_receivers_in():
    seconds = [simulate(s, Unit(beta=1.0)).makespan_s() for s in (to_one_and_back(), hierarchical(), ring.schedule(8))]
    assert seconds == [112, 56, 14]


@pytest.mark.parametrize(("node", "seconds"), [(0, 1), (2, 2), (1, 1)])
def test_ranks_of_a_node_share_its_nic(node, seconds):
    s = typed("0: 0SEND0>2\n1: 1SEND0>3\n2: 0COPY0<0\n3: 1COPY0<1")
    trace = simulate(s, Unit(alpha=1.0, node=node))
    assert trace.makespan_s() == seconds
    if node == 2:  # ties go to the smaller sender
        assert [(s.rank, s.start_s) for s in trace.spans if s.stream == "out"] == [(0, 0), (1, 1)]


def test_a_nic_sends_and_receives_at_once_and_messages_inside_a_node_do_not_use_it():
    s = typed("0: 0SEND0>2 5SEND1>1\n1: 5COPY1<0\n2: 0COPY0<0\n3: 1SEND0>1\n1: 1COPY0<3")
    lanes = (s.lanes[0], s.lanes[1] + s.lanes[4], s.lanes[2], s.lanes[3])
    assert simulate(Schedule("s", lanes, {}), Unit(alpha=1.0, node=2)).makespan_s() == 3
    both = typed("0: 0SEND0>2\n1: 1COPY0<3\n2: 0COPY0<0\n3: 1SEND0>1")
    assert simulate(both, Unit(alpha=1.0, node=2)).makespan_s() == 1


def test_free_takes_no_time_and_holds_up_nobody():
    s = typed("0: 0F0 0DROP0 1F0 1DROP0 0B0", {"0DROP0": "0B0", "1DROP0": "0F0"})
    trace = simulate(s, Unit(by={"F": 1.0, "B": 2.0, "DROP": 9.0}))
    assert trace.makespan_s() == 4
    assert times(trace, 0, "free") == [("1DROP0", 1, 1), ("0DROP0", 4, 4)]


def test_levels_kept_from_the_start_given_back_at_the_end_extra_while_it_runs():
    costs = Unit(by={"F": 1.0, "B": 2.0}, kept={"F": 10, "B": -10}, extra={"B": 3})
    levels = simulate(typed("0: 0F0 1F0 1B0 0B0"), costs).levels
    assert levels == [Level(0, at, "activations", n) for at, n in [(0, 10), (1, 20), (2, 23), (4, 13), (6, 0)]]


def test_frees_come_before_allocations():
    s = typed("0: 0F0 0DROP0 1F0", {"0DROP0": "0F0"})
    trace = simulate(s, Unit(by={"F": 1.0}, kept={"F": 5, "DROP": -5}))
    assert [(x.at_s, x.live_bytes) for x in trace.levels] == [(0, 5)]


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 9), st.integers(0, 9), st.floats(0, 2))
def test_a_schedule_ends_at_level_zero(stages, batches, kept, extra, alpha):
    costs = Unit({"F": 1.0, "B": 2.0}, alpha=alpha, kept={"F": kept, "B": -kept}, extra={"F": extra, "B": 2 * extra})
    trace = simulate(gpipe(stages, batches), costs)
    last = {x.rank: x.live_bytes for x in trace.levels}
    assert set(last.values()) <= {0} and all(x.live_bytes >= 0 for x in trace.levels)
    assert all(trace.peak_bytes(r) >= batches * kept for r in range(stages))


@given(st.integers(0, 10**6), st.sampled_from(["ring", "naive", "hierarchical", "gpipe"]))
def test_shuffled_lanes_give_an_equal_trace(seed, which):
    s = {"ring": ring.schedule(8), "naive": naive.schedule(8), "hierarchical": hierarchical(), "gpipe": gpipe(4, 4)}[
        which
    ]
    costs = Unit({"F": 1.0, "B": 2.0}, alpha=3.0, beta=1.0, node=4, slow=4.0, kept={"F": 1, "B": -1})
    lanes = list(s.lanes)
    random.Random(seed).shuffle(lanes)
    assert simulate(Schedule(s.name, tuple(lanes), s.needs), costs) == simulate(s, costs)


class Sized(Unit):
    """Unit costs that know bytes."""

    def nbytes(self, action):
        return 100 * action.count if action.peer >= 0 else 0


def test_spans_carry_their_action_and_the_bytes_which_the_costs_know():
    s = typed("0: 0F0 0SEND0>1*3\n1: 0ADD0<0*3")
    assert [x.nbytes for x in simulate(s, Unit(alpha=1.0)).spans] == [0, 0, 0]
    trace = simulate(s, Sized(alpha=1.0))
    assert {str(x.action): x.nbytes for x in trace.spans} == {"0F0": 0, "0SEND0>1*3": 300, "0ADD0<0*3": 300}


def test_nothing_takes_no_time():
    assert simulate(Schedule("nothing", (), {}), Unit()).spans == []
    assert simulate(Schedule("idle", ((), ()), {}), Unit()).makespan_s() == 0


class Failing(Unit):
    """Costs that fail."""

    def seconds(self, action):
        raise KeyError(action)


def test_the_collector_works_again_on_every_way_out():
    assert gc.isenabled()
    simulate(gpipe(2, 2), FB)
    with pytest.raises(KeyError):
        simulate(gpipe(2, 2), Failing())
    with pytest.raises(ScheduleError):
        simulate(typed("0: 0F0", {"0F0": "0F0"}), FB)
    assert gc.isenabled()


def test_it_imports_the_base_only_and_names_no_verb():
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    ours = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module.startswith("lt_core")]
    assert ours and all(name.startswith("lt_core.base.") for name in ours)
    texts = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    assert "Op" not in names and not texts & set(Op.__members__)
