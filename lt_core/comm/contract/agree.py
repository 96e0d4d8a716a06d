"""What ranks must agree on: that their collectives are the same ones in the same order, and that messages find a taker.

Each says on its page what it calls; agreement is the comparison of two records.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from lt_core.base.errors import Mismatch
from lt_core.comm import checks
from lt_core.comm.comm import Ends
from lt_core.comm.contract.pages import AGREED, CALLS, SENT, WANTED, Pages
from lt_core.comm.contract.waits import OTHER, TO_SEND

_BYTES = 15  # in the place of a dtype


class Calls:
    """The collectives of a group, numbered from 1 on in each rank's own order."""

    def __init__(self, pages: Pages) -> None:
        self._pages, self._lock = pages, threading.Lock()
        self._posted = self._agreed = 0
        self._slowest = 0  # what the slowest rank had agreed on when we last looked

    def post(self, text: str) -> int:
        """Say what our next collective is; its number. There must be room."""
        with self._lock:
            self._posted += 1
            self._pages.set_call(self._posted, text)
            return self._posted

    def no_room(self) -> Mapping[int, int]:
        """Who still has to look at the call whose place the next one takes."""
        oldest = self._posted + 1 - CALLS
        if oldest <= self._slowest:
            return {}
        self._compare(self._posted)
        agreed = [self._pages.head(r, AGREED) for r in range(self._pages.size)]
        self._slowest = min(agreed)
        return {r: OTHER for r, number in enumerate(agreed) if number < oldest}

    def missing(self, number: int) -> Mapping[int, int]:
        """Who has not come to collective `number`. Errors: `Mismatch`, if someone came to another one."""
        behind = self._compare(number)
        return dict.fromkeys(behind, OTHER)

    def _compare(self, number: int) -> list[int]:
        """Compare call after call up to `number`; the ranks that have not come to the first open one."""
        with self._lock:
            while self._agreed < number:
                behind = [r for r in range(self._pages.size) if not self._same(r, self._agreed + 1)]
                if behind:
                    return behind
                self._agreed += 1
                self._pages.set_head(AGREED, self._agreed)
        return []

    def _same(self, rank: int, number: int) -> bool:
        theirs = self._pages.call(rank, number)
        if not theirs:
            return theirs is not None
        (first, one), (second, other) = sorted([(self._pages.rank, self._pages.own_call(number)), (rank, theirs)])
        raise Mismatch(
            f"collective {number} of this group: rank {first} calls {one}, rank {second} calls {other}",
            attempt="make the same calls in the same order on every rank",
        )


class End(NamedTuple):
    """One of our ends of a message: SENT or WANTED, the peer, its number on the link, and its size and dtype."""

    kind: int
    peer: int
    number: int
    shape: int


class Messages:
    """The messages of a rank, numbered from 1 on in each direction of each link."""

    def __init__(self, pages: Pages) -> None:
        self._pages, self._fence = pages, threading.Lock()

    def post(self, sends: Ends, receives: Ends) -> list[End]:
        """Say what we send and want; calls must follow each other. Errors: `Mismatch` with what peers have said."""
        ends = [self._end(SENT, *end) for end in sends] + [self._end(WANTED, *end) for end in receives]
        with self._fence:  # a locked instruction: what we said is seen before we look
            self.missing(ends)  # of two ranks that differ the later one sees it, before anything moves
        return ends

    def _end(self, kind: int, x: Tensor, peer: int) -> End:
        known = x.dtype in checks.MOVED  # what is not may cross too, as bytes
        shape = x.numel() << 4 | checks.MOVED.index(x.dtype) if known else x.nbytes << 4 | _BYTES
        return End(kind, peer, self._pages.add_end(kind, peer, shape), shape)

    def missing(self, ends: list[End]) -> Mapping[int, int]:
        """Whose other ends are not posted. Errors: `Mismatch`, if one is of another size or dtype."""
        pages = self._pages
        found: dict[int, int] = {}
        for end in ends:
            if pages.ends(1 - end.kind, end.peer, pages.rank) < end.number:
                found[end.peer] = found.get(end.peer, 0) | (TO_SEND if end.kind == SENT else OTHER)
            elif (other := pages.shape(1 - end.kind, end.peer, pages.rank, end.number)) not in (None, end.shape):
                raise self._unlike(end, other or 0)
        return found

    def _unlike(self, end: End, other: int) -> Mismatch:
        ends = [(self._pages.rank, end.shape), (end.peer, other)]
        (sender, sent), (receiver, wanted) = ends if end.kind == SENT else ends[::-1]
        return Mismatch(
            f"message {end.number} from rank {sender} to rank {receiver} does not fit its buffer",
            f"{_words(sent)} sent, room for {_words(wanted)}",
            "one size and dtype",
        )


def _words(shape: int) -> str:
    kind = shape & 15
    return f"{shape >> 4} {'bytes' if kind == _BYTES else str(checks.MOVED[kind]).removeprefix('torch.')}"
