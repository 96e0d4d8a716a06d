"""A circle of waits is a deadlock only when every rank on it has looked anew: a page may be older than it seems."""

import mmap
import time

import pytest

from lt_core.base.errors import Deadline, Misuse
from lt_core.comm.contract.pages import LOOKS, WAIT, Pages, pages_bytes
from lt_core.comm.contract.waits import OTHER, TO_SEND, Waits

WAIT_S = 0.6


@pytest.fixture
def pair():
    """The pages of rank 0, who waits, and of rank 1, whose page says that it waits to send to rank 0."""
    memory = mmap.mmap(-1, pages_bytes(2))
    mine, theirs = Pages(memory, 2, 0), Pages(memory, 2, 1)
    Waits(theirs, 1.0, str, str)  # its page says that one thread uses it
    theirs.set_head(WAIT, 1)
    theirs.set_waits({0: TO_SEND}, "exchange (to 0)")
    return mine, theirs


def waiting(pages, seen):
    """Rank 0 waits to send to rank 1 for at most `WAIT_S`; `seen` is called at each of its polls. Seconds it took."""

    def missing():
        seen()
        return {1: TO_SEND}

    begun_s = time.perf_counter()
    with pytest.raises((Deadline, Misuse)):  # when time is up a circle may be told, too
        Waits(pages, WAIT_S, str, lambda reason: None).until(missing, "exchange (to 1)")
    return time.perf_counter() - begun_s


def test_a_rank_that_has_not_had_a_core_since_is_not_held_for_one_that_waits(pair):
    mine, theirs = pair
    theirs.set_head(LOOKS, 5)
    assert waiting(mine, lambda: None) >= WAIT_S


def test_one_look_may_have_begun_before_ours_and_proves_nothing(pair):
    mine, theirs = pair
    assert waiting(mine, lambda: theirs.set_head(LOOKS, min(1, mine.head(0, LOOKS)))) >= WAIT_S


def test_a_rank_that_goes_from_wait_to_wait_is_not_on_a_circle(pair):
    mine, theirs = pair

    def goes_on():
        theirs.set_head(WAIT, theirs.head(1, WAIT) + 1)
        theirs.set_head(LOOKS, theirs.head(1, LOOKS) + 1)

    assert waiting(mine, goes_on) >= WAIT_S


def test_a_wait_may_be_as_long_as_it_likes(pair, monkeypatch):
    """After some nine seconds it fell over the number of its own polls."""
    mine, _ = pair
    seconds = []
    monkeypatch.setattr("lt_core.comm.contract.waits.time.sleep", seconds.append)
    pages_polls = [{1: TO_SEND}] * 10_000
    Waits(mine, 60.0, str, lambda reason: None).until(
        lambda: pages_polls.pop() if pages_polls else {}, "exchange (to 1)"
    )
    assert len(seconds) == 10_000 and max(seconds) == 1e-3 and min(seconds) == 1e-5


def test_a_circle_whose_ranks_all_look_anew_is_a_deadlock_at_once(pair):
    mine, theirs = pair
    waiting(mine, lambda: theirs.set_head(LOOKS, mine.head(0, LOOKS)))
    assert mine.head(0, LOOKS) <= 4


def test_what_a_rank_waits_for_may_become_less_while_it_is_looked_at(pair):
    """The circle as it was first seen never came again, so that only the deadline ended it."""
    mine, theirs = pair
    theirs.set_waits({0: TO_SEND | OTHER}, "exchange (to 0, from 0)")

    def looks_anew():
        theirs.set_head(LOOKS, mine.head(0, LOOKS))
        if mine.head(0, LOOKS):
            theirs.set_waits({0: TO_SEND}, "exchange (to 0, from 0)")

    waiting(mine, looks_anew)
    assert mine.head(0, LOOKS) <= 5
