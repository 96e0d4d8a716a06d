"""A notebook holds one group: the same ranks for who asks for the same, others where a cell asks for others."""

import pytest

from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.magics.held import Held
from lt_core.magics.options import Options

SLOW = Wire("shaped", 1e-3, 1e6)


class Screen:
    """What was shown."""

    def __init__(self):
        self.lines, self.where = [], []

    def show(self, line):
        self.lines.append(line.text)

    def progress(self, text):
        self.where.append(text)


@pytest.fixture
def screen():
    return Screen()


@pytest.fixture
def held(groups):
    return Held(lambda: "ring.ipynb", groups)


def taken(held, screen, **options):
    group = held.take(Options()._replace(**options), screen)
    group.alive = True
    return group


def test_the_first_cell_says_how_many(held, screen, groups):
    with pytest.raises(UserError, match="no ranks stand yet; expected their number in the first cell; try: %%tor"):
        taken(held, screen)
    assert groups.made == []


def test_a_group_is_made_as_the_cell_says(held, screen):
    group = taken(held, screen, size=4, shape=SLOW)
    assert (group.size, group.shape, group.owner) == (4, SLOW, "ring.ipynb")
    assert screen.where == ["starting 4 ranks over gloo"] and screen.lines == []


@pytest.mark.parametrize("again", [{}, {"size": 4}, {"backend": "gloo"}, {"size": 4, "timeout_s": 5.0}])
def test_the_next_cell_gets_the_same_ranks(held, screen, again):
    first = taken(held, screen, size=4)
    assert taken(held, screen, **again) is first and first.log == []
    assert screen.where == ["starting 4 ranks over gloo"] and screen.lines == []


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        ({"size": 4}, {"size": 2}, "2 new ranks, without the variables: there were 4"),
        ({"size": 2}, {"shape": SLOW}, "2 new ranks, without the variables: their wires were as they are"),
        ({"size": 2, "shape": SLOW}, {}, f"2 new ranks, without the variables: their wires were {SLOW}"),
        ({"size": 2}, {"backend": "nccl"}, "2 new ranks, without the variables: over gloo"),
    ],
)
def test_other_ranks_replace_them_and_it_is_said(held, screen, first, other, said):
    old = taken(held, screen, **first)
    new = taken(held, screen, **other)
    assert new is not old and old.log == ["stop"] and screen.lines == [said]
    assert taken(held, screen, **other) is new


def test_other_ranks_that_cannot_be_had_leave_the_old_ones(held, screen):
    old = taken(held, screen, size=2)

    def refused(*_, **__):
        raise UserError("nccl needs a GPU for each of 2 ranks")

    held._make = refused
    with pytest.raises(UserError, match="nccl needs a GPU"):
        taken(held, screen, backend="nccl")
    assert old.log == [] and taken(held, screen) is old


def test_ranks_that_have_ended_are_not_mourned(held, screen):
    old = taken(held, screen, size=2)
    old.alive = False
    taken(held, screen, size=3)
    assert old.log == ["stop"]  # their thread, sockets and pipes went with nobody
    assert screen.lines == [] and screen.where[-1] == "starting 3 ranks over gloo"


def test_a_group_that_ended_starts_again(held, screen):
    group = taken(held, screen, size=1)
    group.alive = False
    assert taken(held, screen) is group and screen.where == ["starting 1 rank over gloo"] * 2


def test_fresh_ranks_stand_beside_the_held_ones(held, screen):
    group = taken(held, screen, size=2)
    fresh = held.fresh(Options(), screen)
    assert fresh is not group and fresh.size == 2 and taken(held, screen) is group


def test_stop_says_whether_there_was_something(held, screen):
    assert held.stop() is False
    group = taken(held, screen, size=2)
    assert held.stop() is True and group.log == ["stop"] and held.group is None
    assert held.stop() is False
