"""The hierarchy, as a drawing, its rounds beside the paper's, and the size at which the hybrid turns to the ring."""

import pytest

from lt_core.base.cluster import KITCHEN, OFFICE, RACK, Cluster, Device, Wire
from lt_core.base.errors import UserError
from lt_core.collectives import hierarchical, ring
from lt_core.engine.costs import Unit, of_cluster
from lt_core.engine.simulate import simulate
from tests.witnesses import by_simulation, seconds_by_simulation


def test_two_groups_of_two():
    assert (
        hierarchical.schedule(4).check().grid()
        == """\
0: 0ADD0<1*4  0SEND1>2*2+2ADD1<2*2 2SEND2>2*2+0COPY2<2*2 0SEND3>1*4
1: 0SEND0>0*4 .                    .                     0COPY3<0*4
2: 0ADD0<3*4  2SEND1>0*2+0ADD1<0*2 0SEND2>0*2+2COPY2<0*2 0SEND3>3*4
3: 0SEND0>2*4 .                    .                     0COPY3<2*4"""
    )


def test_only_masters_leave_their_group():
    ends = {(a.rank, a.peer) for a in hierarchical.schedule(12, group=4).actions()}
    assert {(a, b) for a, b in ends if a // 4 != b // 4} == {(a, b) for a in (0, 4, 8) for b in (0, 4, 8) if a != b}


@pytest.mark.parametrize(("size", "group"), [(4, 2), (8, 2), (8, 4), (8, 8), (6, 3), (12, 4), (5, 1)])
def test_laws_hold_for_any_group(size, group):
    schedule, wire = hierarchical.schedule(size, group).check(), Wire("all", 1000.0, 0.25)
    assert hierarchical.law_rounds(size, group) == len({a.batch for a in schedule.actions()})
    simulated = seconds_by_simulation(schedule, 8 * size, wire, 3.0)
    assert hierarchical.law_seconds(size, 8 * size, wire, 3.0, group) == simulated
    for elements in (0, 1, 7, 29):
        sent = by_simulation(schedule, elements, 2, cut=size)
        assert [hierarchical.law_bytes(size, elements, 2, r, group) for r in range(size)] == [s.nbytes for s in sent]
        assert [hierarchical.law_messages(size, elements, r, group) for r in range(size)] == [s.messages for s in sent]


def test_rounds_of_the_paper():
    """It counts 4 (k - 1) + 2 (p / k - 1), its first and last step twice."""
    assert (hierarchical.law_rounds(1024, 16), ring.law_rounds(1024)) == (156, 2046)
    assert hierarchical.law_rounds(1024, 16) + 2 * (16 - 1) == 186
    assert hierarchical.law_rounds(8, 4) == 8


def test_eight_ranks_and_eight_chunks_take_56_chunk_times():
    assert simulate(hierarchical.schedule(8, 4), Unit(beta=1.0)).makespan_s() == 56


def test_seconds_where_a_group_is_a_machine():
    nbytes, cluster = 1 << 20, Cluster("four", Device("any", 0), 4, RACK, nodes=4, outer=OFFICE)
    simulated = simulate(hierarchical.schedule(16, 4), of_cluster(cluster, nbytes // 16)).makespan_s()
    assert hierarchical.law_seconds(16, nbytes, OFFICE, group=4, inside=RACK) == pytest.approx(simulated)


@pytest.mark.parametrize("wire", [OFFICE, KITCHEN], ids=lambda wire: wire.name)
def test_the_hybrid_turns_to_the_ring_where_both_cost_the_same(wire):
    threshold = hierarchical.threshold_bytes(16, wire, group=4)
    assert hierarchical.law_seconds(16, threshold, wire, group=4) == pytest.approx(
        ring.law_seconds(16, threshold, wire)
    )
    below, above = int(threshold) - 9, int(threshold) + 9
    assert hierarchical.law_seconds(16, below, wire, group=4) < ring.law_seconds(16, below, wire)
    assert hierarchical.law_seconds(16, above, wire, group=4) > ring.law_seconds(16, above, wire)
    assert hierarchical.hybrid(16, below, threshold, group=4) == hierarchical.schedule(16, 4)
    assert hierarchical.hybrid(16, above, threshold, group=4) == ring.schedule(16)


def test_where_the_wires_inside_cost_nothing_the_ring_never_wins():
    inside = Wire("none", 0.0, float("inf"))
    assert hierarchical.threshold_bytes(16, OFFICE, group=4, inside=inside) == float("inf")
    assert hierarchical.threshold_bytes(5, OFFICE, group=1) == float("inf")  # it is the ring


@pytest.mark.parametrize(("size", "group"), [(5, 2), (6, 4), (8, 0), (8, -2), (4, 8)])
def test_ranks_that_do_not_factor_are_refused(size, group):
    text = f"{size} ranks are no hierarchy; got groups of {group}; expected groups that divide {size}"
    for ask in (hierarchical.schedule, hierarchical.law_rounds):
        with pytest.raises(UserError, match=text):
            ask(size, group)


@pytest.mark.parametrize("size", [2, 3, 5, 7])
def test_prime_ranks_fall_back_to_the_ring(size):
    assert hierarchical.schedule(size).lanes == ring.schedule(size).lanes
