"""Prices: round numbers follow the alpha-beta model, and a cluster with a profile prices every verb or says why not."""

import math

import pytest

from lt_core.base.action import Action
from lt_core.base.cluster import ETHERNET_10G, H200_NODE, PCIE4, PCIE_NODE, Cluster, Device, Wire
from lt_core.base.errors import UserError
from lt_core.base.profile import Layer, Profile
from lt_core.collectives import ring
from lt_core.engine.costs import Unit, of_cluster
from lt_core.engine.simulate import simulate
from tests.typed import gpipe, typed

LAYERS = (
    Layer("0", 1.0, 2.0, 100, kept_bytes=700, input_kept_bytes=60, parameter_bytes=16, extra_forward_bytes=5),
    Layer("1", 3.0, 5.0, 40, kept_bytes=300, parameter_bytes=32, extra_backward_bytes=9),
)
MODEL = Profile(LAYERS, "cpu", input_bytes=8)
PAIR = Cluster("pair", Device("d", 10**9), 2, Wire("w", 1.0, 10.0))


def action(text, rank=0):
    return Action.parse(text, rank)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0SEND0>1*3", 10 + 2 * 3), ("0SEND_F0>1", 12), ("0ADD0<1*3", 0.5 * 3), ("0COPY0<1*3", 0), ("0F0", 7), ("0B0", 0)],
)
def test_round_numbers(text, seconds):
    assert Unit(by={"F": 7}, alpha=10, beta=2, gamma=0.5).seconds(action(text)) == seconds


def test_between_nodes_a_message_is_slower_and_holds_two_nics():
    costs = Unit(alpha=1.0, beta=1.0, node=2, slow=4.0)
    inside, across = action("0SEND0>1"), action("0SEND0>2")
    assert (costs.seconds(inside), costs.seconds(across)) == (2, 8)
    assert costs.shared(inside) == () and costs.shared(across) == (("nic out", 0), ("nic in", 1))
    assert costs.shared(action("0F0")) == ()


def test_memory_in_round_numbers():
    costs = Unit(kept={"F": 5, "B": -5}, extra={"B": 2})
    assert [costs.kept_bytes(action(t)) for t in ("0F0", "0B0", "0W0")] == [5, -5, 0]
    assert [costs.extra_bytes(action(t)) for t in ("0F0", "0B0")] == [0, 2]


@pytest.mark.parametrize("where", ["by", "kept", "extra"])
def test_a_verb_that_there_is_not(where):
    with pytest.raises(UserError, match="'FORWARD' is no verb; expected one of F, C, N, B"):
        Unit(**{where: {"FORWARD": 1}})


@pytest.mark.parametrize(
    ("text", "seconds", "nbytes"),
    [
        ("0F0", 1.0, 0),
        ("1C0", 3.0, 0),
        ("1B0", 5.0, 0),
        ("1I0", 2.5, 0),
        ("1W0", 2.5, 0),
        ("1U0", 0.25, 0),
        ("0SEND_F0>1", 1 + 100 / 10, 100),
        ("0COPY_F0<1", 0.0, 100),
        ("1SEND_B0>1", 1 + 100 / 10, 100),
        ("0SEND_B0>1", 1 + 8 / 10, 8),
        ("0SEND0>1", 1 + 30 / 10, 30),
        ("1SEND0>1*2", 1 + 51 / 10, 51),
        ("1ADD0<1*2", 51 * 0.5, 51),
        ("1COPY0<1*2", 0.0, 51),
        ("1GATHER0", 1 + 16 / 10, 32),
        ("0SCATTER0", 1 + 8 / 10, 16),
        ("0OUT0", 0.5 + 700 / 100, 700),
        ("1IN0", 0.5 + 300 / 100, 300),
        ("0DROP0", 0.0, 0),
    ],
)
def test_prices_of_a_cluster(text, seconds, nbytes):
    costs = of_cluster(PAIR, (30, 30, 21), MODEL, Wire("host", 0.5, 100.0), add_s_per_byte=0.5, update_s=0.25)
    if action(text).op.stream != "free":
        assert costs.seconds(action(text)) == seconds
    assert costs.nbytes(action(text)) == nbytes


def test_the_two_halves_of_a_backward_are_the_whole():
    costs = of_cluster(PAIR, profile=MODEL)
    assert costs.seconds(action("1I0")) + costs.seconds(action("1W0")) == costs.seconds(action("1B0"))


@pytest.mark.parametrize(
    ("text", "kept", "extra"),
    [
        ("0F0", 700, 5), ("0B0", -700, 0), ("0W0", -700, 0), ("0I0", 0, 0), ("0N0", 0, 5), ("0C0", 60, 5),
        ("0DROP0", -60, 0), ("0FREE0", -700, 0), ("0IN0", 700, 0), ("0OUT0", 0, 0), ("1B0", -300, 9), ("1U0", 0, 0),
        ("0SEND_F0>1", 0, 0),
    ],
)  # fmt: skip
def test_memory_of_a_profile(text, kept, extra):
    costs = of_cluster(PAIR, profile=MODEL)
    assert (costs.kept_bytes(action(text)), costs.extra_bytes(action(text))) == (kept, extra)


def test_without_a_profile_nothing_is_kept():
    assert of_cluster(PAIR, 1).kept_bytes(action("0F0")) == of_cluster(PAIR, 1).extra_bytes(action("0F0")) == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2F0", r"2F0 has no price; got a profile of 2 layers; expected at least 3"),
        ("3SEND0>1", r"3SEND0>1 has no price; got 3 chunk sizes; expected at least 4"),
        ("0OUT0", r"0OUT0 has no price; try: give `host`, the wire between device and host"),
        ("0SEND0>2", r"pair has no rank 2; expected 0 to 1"),
    ],
)
def test_what_has_no_price(text, message):
    with pytest.raises(UserError, match=message):
        of_cluster(PAIR, (30, 30, 21), MODEL).seconds(action(text))


def test_a_ring_over_two_nodes_meets_its_law_on_the_slowest_wire():
    cluster = H200_NODE.times(2)
    assert cluster.outer is not None
    trace = simulate(ring.schedule(16), of_cluster(cluster, 10**6))
    assert trace.makespan_s() == pytest.approx(30 * cluster.outer.seconds(10**6), rel=1e-12)
    assert {s.nbytes for s in trace.spans} == {10**6}


def test_four_ranks_of_a_node_take_turns_at_its_nic():
    rows = [f"{r}: {r}SEND0>{r + 4}" for r in range(4)] + [f"{r + 4}: {r}COPY0<{r}" for r in range(4)]
    trace = simulate(typed("\n".join(rows)), of_cluster(PCIE_NODE.times(2), 10**6))
    assert trace.makespan_s() == pytest.approx(4 * ETHERNET_10G.seconds(10**6), rel=1e-12)
    assert PCIE4.seconds(10**6) < ETHERNET_10G.seconds(10**6)


def test_a_pipeline_of_a_profile():
    costs = of_cluster(Cluster("fast", PAIR.device, 2, Wire("w", 0.0, math.inf)), profile=MODEL)
    trace = simulate(gpipe(2, 2), costs)
    assert trace.makespan_s() == 1 + 2 * 3 + 2 * 5 + 2
    assert (trace.peak_bytes(0), trace.peak_bytes(1)) == (700 + 700 + 5, 300 + 300 + 9)
