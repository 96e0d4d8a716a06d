"""The tree, as a drawing, its messages counted, and why it is for small tensors only."""

import pytest

from lt_core.base.cluster import OFFICE
from lt_core.collectives import ring, tree
from lt_core.collectives.rounds import ADD


def test_sums_climb_to_rank_0_and_come_down():
    assert (
        tree.schedule(4).check().grid()
        == """\
0: 0ADD0<1*4  0ADD1<2*4  0SEND2>2*4 0SEND3>1*4
1: 0SEND0>0*4 .          .          0COPY3<0*4
2: 0ADD0<3*4  0SEND1>0*4 0COPY2<0*4 0SEND3>3*4
3: 0SEND0>2*4 .          .          0COPY3<2*4"""
    )


def test_five_ranks_have_no_partner_beyond_the_last():
    ways = [(m.sender, m.receiver) for messages in tree.upwards(5) for m in messages]
    assert ways == [(1, 0), (3, 2), (2, 0), (4, 0)]


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 8, 13, 16])
def test_every_rank_gives_once_and_its_parent_is_nearer_to_the_root(size):
    parents = {a.peer: a.rank for a in tree.schedule(size).actions() if a.op is ADD}
    assert parents == {rank: rank & (rank - 1) for rank in range(1, size)}  # without its lowest bit


@pytest.mark.parametrize("size", range(1, 17))
def test_there_are_twice_as_many_messages_as_ranks_to_be_heard(size):
    assert sum(tree.law_messages(size, 10, rank) for rank in range(size)) == 2 * (size - 1)
    assert tree.law_messages(size, 10, 0) == (size - 1).bit_length()
    assert sum(tree.law_messages(size, 0, rank) for rank in range(size)) == 0


def test_few_rounds_and_many_bytes():
    assert (tree.law_rounds(1024), ring.law_rounds(1024)) == (20, 2046)
    assert (tree.law_bytes(1024, 1024, 4, 0), ring.law_bytes(1024, 1024, 4, 0)) == (10 * 4096, 2046 * 4)


def test_faster_than_the_ring_for_small_tensors_only():
    faster = [tree.law_seconds(8, nbytes, OFFICE) < ring.law_seconds(8, nbytes, OFFICE) for nbytes in (10**3, 10**6)]
    assert faster == [True, False]
