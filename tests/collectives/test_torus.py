"""The torus, as a drawing: rings in two directions, whose rounds are fewer and whose bytes are the ring's."""

import pytest

from lt_core.base.cluster import H200_NODE, OFFICE, RACK, Cluster, Device
from lt_core.base.errors import UserError
from lt_core.collectives import ring, torus
from lt_core.collectives.rounds import ADD
from lt_core.engine.costs import of_cluster
from lt_core.engine.simulate import simulate
from tests.witnesses import by_law, by_simulation


def test_four_ranks_in_a_square():
    assert (
        torus.schedule(4).check().grid()
        == """\
0: 0SEND0>1*2+2ADD0<1*2 2SEND1>2+3ADD1<2 3SEND2>2+2COPY2<2 2SEND3>1*2+0COPY3<1*2
1: 2SEND0>0*2+0ADD0<0*2 0SEND1>3+1ADD1<3 1SEND2>3+0COPY2<3 0SEND3>0*2+2COPY3<0*2
2: 0SEND0>3*2+2ADD0<3*2 3SEND1>0+2ADD1<0 2SEND2>0+3COPY2<0 2SEND3>3*2+0COPY3<3*2
3: 2SEND0>2*2+0ADD0<2*2 1SEND1>1+0ADD1<1 0SEND2>1+1COPY2<1 0SEND3>2*2+2COPY3<2*2"""
    )


def test_ranks_talk_along_their_row_and_down_their_column_only():
    ends = {(a.rank, a.peer) for a in torus.schedule(12, columns=4).actions() if a.op.stream == "out"}
    along = {(r, r // 4 * 4 + (r + 1) % 4) for r in range(12)}
    assert ends == along | {(r, (r + 4) % 12) for r in range(12)}


def test_before_the_columns_begin_column_x_holds_its_rows_sum_of_chunk_x_plus_1():
    last = {a.rank: (a.unit, a.count) for a in torus.schedule(8).actions() if a.op is ADD and a.batch == 2}
    assert last == {rank: ((rank % 4 + 1) % 4 * 2, 2) for rank in range(8)}


@pytest.mark.parametrize(("size", "columns"), [(1, 1), (4, 2), (6, 3), (8, 4), (12, 4), (16, 4), (7, 7)])
def test_the_grid_nearest_to_a_square(size, columns):
    assert torus.squarest(size) == columns


def test_eight_rounds_in_place_of_fourteen_with_as_few_bytes():
    assert (torus.law_rounds(8, columns=4), ring.law_rounds(8)) == (8, 14)
    for elements in (8, 1024):
        assert {torus.law_bytes(8, elements, 4, rank) for rank in range(8)} == {ring.law_bytes(8, elements, 4, 0)}


@pytest.mark.parametrize("columns", [1, 7])
def test_a_torus_of_one_row_or_column_is_a_ring(columns):
    assert [(m.rank, m.peer, m.batch) for m in torus.schedule(7, columns).actions()] == [
        (m.rank, m.peer, m.batch) for m in ring.schedule(7).actions()
    ]
    assert torus.law_rounds(7, columns) == ring.law_rounds(7)
    assert torus.law_seconds(7, 700, OFFICE, 1e-9, columns) == ring.law_seconds(7, 700, OFFICE, 1e-9)


@pytest.mark.parametrize(("size", "columns"), [(6, 2), (6, 6), (8, 2), (8, 8), (12, 3)])
def test_laws_hold_for_any_columns(size, columns):
    schedule = torus.schedule(size, columns).check()
    assert torus.law_rounds(size, columns) == len({a.batch for a in schedule.actions()})
    for elements in (0, 1, 7, 29, 1023):
        sent = by_simulation(schedule, elements, 2)
        assert [torus.law_bytes(size, elements, 2, rank, columns) for rank in range(size)] == [s.nbytes for s in sent]
        assert [torus.law_messages(size, elements, r, columns) for r in range(size)] == [s.messages for s in sent]
    assert by_law(torus, 6, 29, 2) == by_simulation(torus.schedule(6, 3), 29, 2)


def test_seconds_where_rows_are_machines():
    """Each row on a machine of its own: columns go over the wire between machines, which a column has for itself."""
    apart = Cluster("two", Device("any", 0), 1, RACK, nodes=2, outer=OFFICE)
    nbytes = 1 << 20
    simulated = simulate(torus.schedule(2, columns=1), of_cluster(apart, nbytes // 2)).makespan_s()
    assert torus.law_seconds(2, nbytes, OFFICE, columns=1, along=RACK) == pytest.approx(simulated)
    both_s = torus.law_seconds(16, nbytes, OFFICE, columns=8, along=H200_NODE.inner)
    assert both_s < torus.law_seconds(16, nbytes, OFFICE, columns=8)


@pytest.mark.parametrize(("size", "columns"), [(5, 2), (6, 4), (8, 0), (8, -2), (4, 8)])
def test_ranks_that_do_not_factor_are_refused(size, columns):
    text = f"{size} ranks are no torus; got {columns} columns; expected columns that divide {size}"
    for ask in (torus.schedule, torus.law_rounds):
        with pytest.raises(UserError, match=text):
            ask(size, columns)
