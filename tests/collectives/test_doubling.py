"""Recursive doubling, as a drawing: who meets whom, who stands aside, and up to which size it beats the ring."""

import pytest

from lt_core.base.cluster import OFFICE
from lt_core.collectives import doubling, ring


def test_four_ranks_meet_twice():
    assert (
        doubling.schedule(4).check().grid()
        == """\
0: 0SEND0>1*4+0ADD0<1*4 0SEND1>2*4+0ADD1<2*4
1: 0SEND0>0*4+0ADD0<0*4 0SEND1>3*4+0ADD1<3*4
2: 0SEND0>3*4+0ADD0<3*4 0SEND1>0*4+0ADD1<0*4
3: 0SEND0>2*4+0ADD0<2*4 0SEND1>1*4+0ADD1<1*4"""
    )


def test_of_three_ranks_one_stands_aside():
    assert (
        doubling.schedule(3).check().grid()
        == """\
0: 0ADD0<1*3  0SEND1>2*3+0ADD1<2*3 0SEND2>1*3
1: 0SEND0>0*3 .                    0COPY2<0*3
2: .          0SEND1>0*3+0ADD1<0*3 ."""
    )


@pytest.mark.parametrize(
    ("size", "meet"),
    [(1, [0]), (2, [0, 1]), (3, [0, 2]), (6, [0, 2, 4, 5]), (7, [0, 2, 4, 6]), (9, [0, 2, 3, 4, 5, 6, 7, 8])],
)
def test_who_meets_is_a_power_of_two(size, meet):
    assert doubling.meeting(size) == meet
    assert len(meet) == doubling.power(size)


@pytest.mark.parametrize(("size", "rounds"), [(2, 1), (4, 2), (8, 3), (1024, 10), (3, 3), (7, 4), (9, 5)])
def test_rounds(size, rounds):
    assert doubling.law_rounds(size) == rounds


def test_elements_sent_by_who_meets_who_speaks_for_another_and_who_stands_aside():
    assert [doubling.law_bytes(8, 10, 1, rank) for rank in range(8)] == [30] * 8
    assert [doubling.law_bytes(6, 10, 1, rank) for rank in range(6)] == [30, 10, 30, 10, 20, 20]
    assert [doubling.law_messages(6, 0, rank) for rank in range(6)] == [0] * 6


def test_on_eight_ranks_of_the_office_it_beats_the_ring_below_110_000_bytes():
    """3 alpha + 3 n beta = 14 alpha + 1.75 n beta."""
    assert doubling.law_seconds(8, 110_000, OFFICE) == pytest.approx(ring.law_seconds(8, 110_000, OFFICE))
    assert doubling.law_seconds(8, 109_000, OFFICE) < ring.law_seconds(8, 109_000, OFFICE)
    assert doubling.law_seconds(8, 10**8, OFFICE) == pytest.approx(2.4, rel=1e-3)
