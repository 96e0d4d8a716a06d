"""What a rank says on its page before it calls anything, and what it then sees on the others'.

No record gives its place to a later one before it was compared: what is begun and not waited for leaves a rank at
once, and nothing else would hold back the one that is fast.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from lt_core.base.errors import Aborted, Mismatch
from lt_core.comm.comm import Ends
from lt_core.comm.contract.agree import End, Messages
from lt_core.comm.contract.pages import BEGUN, CALLS, SENT, SIZES, WANTED, Pages
from lt_core.comm.contract.waits import pause

Found = TypeVar("Found")


class Said:
    """One rank's part. Of `call` and `put` the later of two ranks that differ raises `Mismatch`; both give None while
    this rank is too far ahead. `members`: the ranks of the group as the whole group numbers them.
    """

    def __init__(self, pages: Pages, members: Sequence[int]) -> None:
        self._pages, self._members, self._messages = pages, members, Messages(pages)
        self._others = [rank for rank in range(pages.size) if rank != pages.rank]
        self._calling, self._posting, self._fence = threading.Lock(), threading.Lock(), threading.Lock()
        self.begun, self._room = 0, CALLS  # our last collective; the last one for which there is a place

    def call(self, text: str) -> int | None:
        """The number of our next collective, which is this one."""
        with self._calling:
            number = self.begun + 1
            if number > self._room and self._too_far(number):
                return None
            with self._fence:
                self.begun = number
                self._pages.set_call(number, text)
                self._pages.set_head(BEGUN, number)
            with self._fence:  # taken again it is a fence: what was written is seen before the others' pages are read
                theirs = [(rank, self._pages.call(rank, number)) for rank in self._others]
        for rank, other in theirs:
            if other:
                raise self._unlike(number, (self._pages.rank, text), (rank, other))
        return number

    def put(self, sends: Ends, receives: Ends) -> list[End] | None:
        """Our ends of an exchange."""
        with self._posting:
            if self._messages.missing(self.taken(sends, receives)):
                return None
            return self._messages.post(sends, receives)

    def taken(self, sends: Ends, receives: Ends) -> list[End]:
        """Our older ends whose places these take; of one batch at most as many as there are places."""
        pages, found = self._pages, []
        for kind, ends in ((SENT, sends), (WANTED, receives)):
            peers = [peer for _, peer in ends]
            for peer in set(peers):
                first = pages.ends(kind, pages.rank, peer) + 1 - SIZES
                for number in range(max(1, first), first + min(peers.count(peer), SIZES)):
                    found.append(End(kind, peer, number, pages.shape(kind, pages.rank, peer, number) or 0))
        return found

    def _too_far(self, number: int) -> bool:
        """Whether somebody may still have to look at the call whose place this one takes."""
        begun = [self._pages.head(rank, BEGUN) for rank in self._others]
        self._room = min(begun, default=number) + CALLS - 1  # who has begun a call has looked at the one before
        return number > self._room

    def _unlike(self, number: int, *said: tuple[int, str]) -> Mismatch:
        (one, first), (other, second) = sorted((self._members[rank], text) for rank, text in said)
        return Mismatch(
            f"collective {number}: rank {one} calls {first}, rank {other} calls {second}",
            attempt="make the same calls in the same order on every rank",
        )


def until(said: Callable[[], Found | None], ended: Callable[[], str]) -> Found:
    """What `said` gives, once it gives something. Errors: `Aborted`, where the group ends first."""
    polls = 0
    while (found := said()) is None:
        if why := ended():
            raise Aborted(why)
        pause(polls)
        polls += 1
    return found
