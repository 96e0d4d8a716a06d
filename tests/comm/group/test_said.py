"""Every mismatch is caught however far ahead a rank is: no record is lost before it was compared. Without processes."""

import mmap
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from queue import SimpleQueue

import pytest
import torch

from lt_core.base.errors import Aborted, Mismatch
from lt_core.base.traffic import Traffic
from lt_core.comm.contract.pages import CALLS, SENT, SIZES, Pages, pages_bytes
from lt_core.comm.group.checked import Checked, Place

WITHIN_S = 20


class Buffering:
    """A communicator of two with which everything can be begun at any time; both ranks share `why`."""

    backend, size, device = "gloo", 2, torch.device("cpu")

    def __init__(self, rank, why):
        self.rank, self.traffic, self._why = rank, Traffic(), why

    @property
    def ended(self):
        return "; ".join(self._why)

    def abort(self, reason):
        self._why.append(reason)

    def start(self, verb, *args):
        pass


class Page:
    """Keeps what is waited for."""

    def __init__(self):
        self.waits = SimpleQueue()

    def inside(self, where):
        self.waits.put(where)
        return nullcontext()


@pytest.fixture
def pair(tmp_path):
    """Rank 0, its page, and rank 1; the other page is looked at by nobody."""
    why, page = [], Page()
    places = [Place(one, tmp_path, lambda make: make(), lambda: "") for one in (page, Page())]
    fast, slow = (Checked(Buffering(rank, why), place, range(2), 60.0) for rank, place in enumerate(places))
    return fast, page, slow


@pytest.fixture
def pool():
    with ThreadPoolExecutor(1) as pool:
        yield pool


def calls(comm, count, x):
    for _ in range(count):
        comm.start("broadcast", x, 0)


def sends(comm, count, x):
    for _ in range(count):
        comm.start("exchange", [(x, 1 - comm.rank)], [])


def wants(comm, count, x):
    for _ in range(count):
        comm.start("exchange", [], [(x, 1 - comm.rank)])


KINDS = {
    "calls": (
        calls, calls, CALLS, f"broadcast of (2,) float32 from rank 0 (collective {CALLS + 1} of this cell)",
        r"collective 1: rank 0 calls broadcast of \(2,\) .*, rank 1 calls broadcast of \(3,\) float32",
    ),
    "sends": (
        sends, wants, SIZES, "exchange (to 1)",
        r"message 1 from rank 0 to rank 1 .*; got 2 float32 sent, room for 3 float32",
    ),
    "wants": (
        wants, sends, SIZES, "exchange (from 1)",
        r"message 1 from rank 1 to rank 0 .*; got 3 float32 sent, room for 2 float32",
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_far_ahead_is_held_until_its_first_call_was_looked_at(pair, pool, kind):
    (ours, others, places, doing, words), (fast, page, slow) = KINDS[kind], pair
    ours(fast, places, torch.ones(2))
    ahead = pool.submit(ours, fast, 1, torch.ones(2))
    assert str(page.waits.get(timeout=WITHIN_S)).startswith(doing)
    with pytest.raises(Mismatch, match=words):
        others(slow, 1, torch.ones(3))
    with pytest.raises((Aborted, Mismatch), match=words):
        ahead.result(WITHIN_S)


@pytest.mark.parametrize("kind", KINDS)
def test_it_goes_on_where_the_calls_are_the_same(pair, pool, kind):
    (ours, others, places, *_), (fast, _, slow) = KINDS[kind], pair
    ahead = pool.submit(ours, fast, 3 * places, torch.ones(2))
    others(slow, 3 * places, torch.ones(2))
    ahead.result(WITHIN_S)
    with pytest.raises(Mismatch):
        others(slow, 1, torch.ones(3)), ours(fast, 1, torch.ones(2))


@pytest.mark.parametrize("kind", KINDS)
def test_who_is_held_is_freed_where_the_group_ends(pair, pool, kind):
    (ours, _, places, *_), (fast, page, _) = KINDS[kind], pair
    ahead = pool.submit(ours, fast, places + 1, torch.ones(2))
    page.waits.get(timeout=WITHIN_S)
    fast.abort("another rank failed")
    with pytest.raises(Aborted, match="another rank failed"):
        ahead.result(WITHIN_S)


def test_a_batch_of_more_messages_than_places_does_not_wait_for_itself(pair, pool):
    fast, _, slow = pair
    x = torch.ones(2)
    pool.submit(fast.start, "exchange", [(x, 1)] * (SIZES + 9), []).result(WITHIN_S)
    pool.submit(wants, slow, SIZES + 9, x).result(WITHIN_S)
    with pytest.raises(Mismatch):
        sends(fast, 1, x), wants(slow, 1, torch.ones(3))


class Stops(Exception):
    """Between two of its writes."""


def test_a_record_half_replaced_is_not_taken_for_the_older_message_s():
    """A page is read while its rank writes: it has given the place away, and its count does not say so yet."""
    memory = mmap.mmap(-1, pages_bytes(2))
    mine, theirs = Pages(memory, 2, 0), Pages(memory, 2, 1)
    for number in range(1, SIZES + 1):
        theirs.add_end(SENT, 0, 16 * number)
    assert mine.shape(SENT, 1, 0, 1) == 16 and mine.shape(SENT, 1, 0, SIZES) == 16 * SIZES

    class Once:
        """Its words, of which one more can be written."""

        def __init__(self, words):
            self.words, self.left = words, 1

        def __getitem__(self, at):
            return self.words[at]

        def __setitem__(self, at, value):
            if not self.left:
                raise Stops
            self.words[at], self.left = value, 0

    theirs._words = Once(theirs._words)
    with pytest.raises(Stops):
        theirs.add_end(SENT, 0, 16 * 1000)
    assert mine.ends(SENT, 1, 0) == SIZES
    assert mine.shape(SENT, 1, 0, 1) is None and mine.shape(SENT, 1, 0, 2) == 32
