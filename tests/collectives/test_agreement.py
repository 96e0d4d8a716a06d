"""Ranks that brought different things all hear so, in the same words."""

import pytest

from lt_core.base.errors import Mismatch
from lt_core.collectives.agreement import agree


def said(comm, lines_of):
    try:
        agree(comm, "gradients", lines_of[comm.rank % len(lines_of)], "sort them")
    except Mismatch as error:
        return str(error)
    return "agreed"


@pytest.mark.parametrize("lines", [[], ["a"], ["a", "b"]])
def test_equal_lines_are_fine(ranks, lines):
    assert ranks(3).run(said, [lines]) == ["agreed"] * 3


@pytest.mark.parametrize(
    ("first", "second", "difference"),
    [
        (["a", "b"], ["b", "a"], "number 0: rank 0 has a, rank 1 has b"),
        (["a", "b"], ["a", "c"], "number 1: rank 0 has b, rank 1 has c"),
        (["a", "b"], ["a"], "number 1: rank 0 has b, rank 1 has nothing"),
        ([], ["ä"], "number 0: rank 0 has nothing, rank 1 has ä"),
    ],
)
def test_the_first_difference_is_named_on_every_rank(ranks, first, second, difference):
    heard = ranks(2).run(said, [first, second])
    assert heard[0] == heard[1]
    assert heard[0].startswith("the ranks brought different gradients; got ")
    assert difference in heard[0]
    assert heard[0].endswith("expected the same on every rank; try: sort them")
