"""Halving-doubling, as a drawing: who owns what half way, and the ring's bytes in the rounds of a tree."""

import pytest

from lt_core.base.cluster import OFFICE, Wire
from lt_core.collectives import halving, ring
from lt_core.collectives.rounds import ADD, COPY


def test_two_ranks_swap_halves_as_in_the_ring():
    assert halving.schedule(2).grid() == (
        "0: 1SEND0>1+0ADD0<1 0SEND1>1+1COPY1<1\n"  #
        "1: 0SEND0>0+1ADD0<0 1SEND1>0+0COPY1<0"
    )


def test_four_ranks_halve_twice_and_double_twice():
    assert (
        halving.schedule(4).check().grid()
        == """\
0: 2SEND0>2*2+0ADD0<2*2 1SEND1>1+0ADD1<1 0SEND2>1+1COPY2<1 0SEND3>2*2+2COPY3<2*2
1: 2SEND0>3*2+0ADD0<3*2 0SEND1>0+1ADD1<0 1SEND2>0+0COPY2<0 0SEND3>3*2+2COPY3<3*2
2: 0SEND0>0*2+2ADD0<0*2 3SEND1>3+2ADD1<3 2SEND2>3+3COPY2<3 2SEND3>0*2+0COPY3<0*2
3: 0SEND0>1*2+2ADD0<1*2 2SEND1>2+3ADD1<2 3SEND2>2+2COPY2<2 2SEND3>1*2+0COPY3<1*2"""
    )


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_half_way_rank_r_owns_chunk_r(size):
    last = halving.law_rounds(size) // 2 - 1
    assert {a.rank: (a.unit, a.count) for a in halving.schedule(size).actions() if a.op is ADD and a.batch == last} == {
        rank: (rank, 1) for rank in range(size)
    }


@pytest.mark.parametrize("size", [2, 4, 8, 16])
def test_what_is_taken_lies_beside_what_is_kept(size):
    """Both halves of a swap are a pair of blocks of one size, the second one starting at a multiple of two of them."""
    for a in halving.schedule(size).actions():
        if a.op is COPY:
            assert a.unit % a.count == 0
            assert (a.unit // a.count) ^ 1 == (a.rank // a.count)


@pytest.mark.parametrize(("size", "rounds"), [(2, 2), (4, 4), (8, 6), (1024, 20), (3, 4), (7, 6), (9, 8)])
def test_rounds(size, rounds):
    assert halving.law_rounds(size) == rounds


def test_as_few_bytes_as_the_ring_where_ranks_are_a_power_of_two():
    for size in (2, 4, 8, 1024):
        assert halving.law_bytes(size, 1024, 4, 0) == ring.law_bytes(size, 1024, 4, 0)
    assert halving.law_bytes(8, 1024, 4, 5) == 1.75 * 4096


def test_uneven_halves():
    assert [halving.law_bytes(4, 10, 1, rank) for rank in range(4)] == [15, 15, 15, 15]
    assert [halving.law_bytes(4, 3, 1, rank) for rank in range(4)] == [4, 4, 5, 5]
    assert [halving.law_messages(4, 3, rank) for rank in range(4)] == [3, 3, 4, 4]


def test_seconds_are_the_rings_with_fewer_latencies():
    free = Wire("no latency", 0.0, 1e9)
    assert halving.law_seconds(8, 10**6, free, 1e-9) == pytest.approx(ring.law_seconds(8, 10**6, free, 1e-9))
    assert halving.law_seconds(8, 0, OFFICE) == 6 * OFFICE.latency_s


def test_who_stands_aside_costs_two_whole_tensors():
    more_s = halving.law_seconds(6, 10**6, OFFICE) - halving.law_seconds(4, 10**6, OFFICE)
    assert more_s == pytest.approx(2 * OFFICE.seconds(10**6))
    assert [halving.law_bytes(6, 8, 1, rank) for rank in range(6)] == [20, 8, 20, 8, 12, 12]
