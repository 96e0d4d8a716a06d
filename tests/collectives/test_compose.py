"""Rounds made of rounds: who was placed where, what runs at once, and the way back."""

from lt_core.collectives import ring
from lt_core.collectives.compose import beside, placed, there_and_back
from lt_core.collectives.rounds import ADD, COPY, Message


def test_placed_rounds_have_other_ranks_and_wider_chunks():
    assert placed([[Message(0, 1, 1, ADD, 2)]], [5, 7], first=4, width=3) == [[Message(5, 7, 7, ADD, 6)]]


def test_placed_where_they_are_they_stay():
    assert placed(ring.rounds(3), range(3)) == ring.rounds(3)


def test_the_shorter_one_ends_early():
    a, b, c = Message(0, 1, 0, ADD), Message(2, 3, 0, ADD), Message(3, 2, 0, COPY)
    assert beside([[a]], [[b], [c]]) == [[a, b], [c]]
    assert beside() == []


def test_back_goes_whatever_went_up_turned_round():
    up, top = [[Message(3, 2, 0, ADD, 4)], [Message(2, 0, 0, ADD, 4)]], [[Message(0, 1, 0, ADD)]]
    down = [[Message(0, 2, 0, COPY, 4)], [Message(2, 3, 0, COPY, 4)]]
    assert there_and_back(up, top) == [*up, *top, *down]
