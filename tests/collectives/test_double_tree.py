"""The double tree, as a drawing and as a structure: no rank is a branch twice, none sends two pieces in a round."""

from collections import Counter

import pytest

from lt_core.base.cluster import OFFICE, Wire
from lt_core.base.errors import UserError
from lt_core.collectives import double_tree, ring
from lt_core.collectives.checks import units
from tests.witnesses import seconds_by_simulation

SIZES = [*range(1, 18), 31, 32, 33, 100]
each_size = pytest.mark.parametrize("size", SIZES)


def test_two_ranks_give_each_other_a_half():
    assert double_tree.schedule(2, pieces=1).check().grid() == (
        "0: 0SEND0>1+1ADD0<1 1SEND1>1+0COPY1<1\n"  #
        "1: 1SEND0>0+0ADD0<0 0SEND1>0+1COPY1<0"
    )


def test_four_ranks_climb_and_come_down_two_trees():
    """The first is 0 -> 1 -> 3 with 2 under 1 as well, the second the same, one further: 1 -> 2 -> 0, 3 under 2."""
    assert double_tree.edges(4, 0) == [(0, 1), (2, 1), (1, 3)]
    assert double_tree.edges(4, 1) == [(1, 2), (3, 2), (2, 0)]
    assert (
        double_tree.schedule(4, pieces=1).check().grid()
        == """\
0: 0SEND0>1         .                1ADD2<2  1SEND5>2 .                 0COPY7<1
1: 1SEND0>2+0ADD0<0 0ADD1<2          0SEND3>3 0COPY4<3 0SEND6>2          0SEND7>0+1COPY7<2
2: 1ADD0<1          0SEND1>1+1ADD1<3 1SEND2>0 1COPY5<0 1SEND6>3+0COPY6<1 1SEND7>1
3: .                1SEND1>2         0ADD3<1  0SEND4>1 1COPY6<2          ."""
    )


@pytest.mark.parametrize(
    ("size", "parents"),
    [
        (2, [2, None]),
        (3, [2, None, 2]),
        (6, [2, 4, 2, None, 6, 4]),
        (7, [2, 4, 2, None, 6, 4, 6]),
        (5, [2, 4, 2, None, 4]),
    ],
)
def test_the_parents_of_ranks_1_to_p(size, parents):
    assert [double_tree.parent(number, size) for number in range(1, size + 1)] == parents


@each_size
def test_no_rank_is_a_branch_in_both_trees(size):
    first, second = ({above for _, above in double_tree.edges(size, tree)} for tree in (0, 1))
    assert not first & second


@each_size
@pytest.mark.parametrize("tree", [0, 1])
def test_each_is_a_binary_tree_over_all_ranks(size, tree):
    parents = dict(double_tree.edges(size, tree))
    assert len(parents) == len(double_tree.edges(size, tree)) == size - 1
    assert max(Counter(parents.values()).values(), default=0) <= 2
    (root,) = set(range(size)) - set(parents)
    for rank in range(size):
        for _ in range(size.bit_length() - 1):  # not higher than floor(log2 p)
            rank = parents.get(rank, rank)
        assert rank == root


@each_size
def test_siblings_have_different_colours(size):
    colour = double_tree.colours(size)
    for tree in (0, 1):
        seen = Counter((above, colour[rank]) for rank, above in double_tree.edges(size, tree))
        assert max(seen.values(), default=1) == 1


@each_size
@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_nobody_sends_or_takes_two_pieces_in_a_round(size, pieces):
    ends = Counter((a.rank, a.op.stream, a.batch) for a in double_tree.schedule(size, pieces).actions())
    assert max(ends.values(), default=1) == 1


@each_size
def test_the_first_piece_is_up_in_time(size):
    height = size.bit_length() - 1
    assert height <= double_tree.first_up(size) <= 2 * height


@pytest.mark.parametrize("size", [2, 4, 7, 12, 16, 100])
def test_no_rank_sends_more_than_twice_the_tensor(size):
    sent = [double_tree.law_bytes(size, 1024, 4, rank) for rank in range(size)]
    assert max(sent) <= 2 * 4096
    assert sum(sent) == 2 * (size - 1) * 4096


@pytest.mark.parametrize("size", [2, 3, 4, 6, 8, 13, 32])
@pytest.mark.parametrize("pieces", [1, 3, 16])
def test_seconds_stay_within_the_law(size, pieces):
    schedule, wire, add_s_per_byte = double_tree.schedule(size, pieces), Wire("all", 1000.0, 0.25), 3.0
    nbytes = 8 * units(schedule)
    simulated = seconds_by_simulation(schedule, nbytes, wire, add_s_per_byte)
    law_s = double_tree.law_seconds(size, nbytes, wire, add_s_per_byte, pieces)
    assert law_s * (1 - 2 / double_tree.law_rounds(size, pieces)) <= simulated <= law_s
    assert size < 4 or simulated >= 2 * nbytes / wire.bytes_per_s


def test_many_pieces_come_near_to_twice_the_tensor():
    free = Wire("no latency", 0.0, 1.0)
    assert double_tree.law_seconds(8, 10**6, free, pieces=64) < 2.1 * 10**6


def test_few_rounds_on_many_ranks():
    assert (double_tree.law_rounds(1024, pieces=4), ring.law_rounds(1024)) == (52, 2046)


@pytest.mark.parametrize("nbytes", [10**4, 10**6, 10**8])
def test_the_best_number_of_pieces(nbytes):
    best = double_tree.best_pieces(16, nbytes, OFFICE)
    seconds = [double_tree.law_seconds(16, nbytes, OFFICE, pieces=pieces) for pieces in range(1, double_tree.MOST + 1)]
    assert double_tree.law_seconds(16, nbytes, OFFICE, pieces=best) == min(seconds)


@pytest.mark.parametrize("pieces", [0, -1])
def test_no_pieces_are_refused(pieces):
    with pytest.raises(UserError, match=f"a double tree sends pieces; got {pieces}; expected at least 1"):
        double_tree.schedule(4, pieces)
