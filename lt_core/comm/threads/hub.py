"""Where the ranks of one communicator wait for each other: one lock, and a bell for each rank.

What a rank has begun is over when the others have done their part. It waits at its bell, never by polling; whoever
does the last part rings. A wait ends early if the hub was ended, or if a rank it needs has returned.
"""

from __future__ import annotations

import copy
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence

from lt_core.base.errors import Aborted, Deadline, Mismatch


class Begun:
    """The Work of a rank of a hub. `missing`: who has not come yet; `open`: how many parts are not over."""

    def __init__(self, hub: Hub, rank: int, missing: Iterable[int], parts: int, words: Callable[[], str]) -> None:
        self.hub, self.rank, self.missing, self.open, self.words = hub, rank, list(missing), parts, words
        self.error: Exception | None = None
        self.result: object = None
        self.start_s = self.end_s = time.perf_counter()

    def wait(self) -> None:
        """Hold until it is over. Raises what went wrong, `Aborted`, or `Deadline` naming who waits for whom."""
        if self.open:
            self.hub.wait(self)
        if self.error:
            raise copy.copy(self.error).with_traceback(self.error.__traceback__) from None  # each rank its own

    def span(self) -> tuple[float, float]:
        """(start, end) in seconds of `time.perf_counter`."""
        return self.start_s, self.end_s

    def part_over(self, error: Exception | None) -> None:
        """One part is over; called under the hub's lock."""
        self.error = self.error or error
        self.end_s = time.perf_counter()
        self.open -= 1

    def __str__(self) -> str:
        return f"rank {self.rank} waits in {self.words()} for {_ranks(set(self.missing))}"


class Hub:
    """The meeting place of `size` ranks; no wait lasts longer than `timeout_s`."""

    def __init__(self, size: int, timeout_s: float, members: Sequence[int] = ()) -> None:
        self.size, self.timeout_s, self._members = size, timeout_s, list(members)
        self.ended = ""
        self.lock = threading.Lock()
        self._bells = [threading.Condition(self.lock) for _ in range(size)]
        self._waiting: list[Begun] = []
        self._gone: set[int] = set()
        self._children: weakref.WeakSet[Hub] = weakref.WeakSet()

    def child(self, members: Sequence[int]) -> Hub:
        """A hub for some of the ranks, which ends when this one does."""
        hub = Hub(len(members), self.timeout_s, members)
        self._children.add(hub)
        return hub

    def check(self) -> None:
        """Raise if it was ended; called under the lock before anything is begun."""
        if self.ended:
            raise Aborted(self.ended)

    def over(self, *parts: tuple[Begun, Exception | None]) -> None:
        """Note parts that are over, and ring for their ranks."""
        with self.lock:
            for begun, error in parts:
                begun.part_over(error)
                self._bells[begun.rank].notify_all()

    def wait(self, begun: Begun) -> None:
        """Hold a rank until what it began is over, or cannot be over any more."""
        with self.lock:
            self._waiting.append(begun)
            in_time = self._bells[begun.rank].wait_for(lambda: self._settled(begun), self.timeout_s)
            self._waiting.remove(begun)
            others = [str(w) for w in self._waiting if w.rank in begun.missing]
            gone = self._gone.intersection(begun.missing)
        if not in_time:
            reason = "; ".join([f"{begun}, longer than {self.timeout_s:g} s", *others])
            self.abort(reason)
            raise Deadline(reason)
        if begun.open and self.ended:
            raise Aborted(self.ended)
        if begun.open:
            returned = f"{_ranks(gone)} {'have' if len(gone) > 1 else 'has'} returned"
            raise Mismatch(f"{begun}; {returned}", attempt="make the same calls on every rank")

    def _settled(self, begun: Begun) -> bool:
        return not begun.open or bool(self.ended) or not self._gone.isdisjoint(begun.missing)

    def abort(self, reason: str) -> None:
        """Free everyone who waits here or in a subset."""
        with self.lock:
            self.ended = self.ended or reason
            self._ring()
        for child in list(self._children):
            child.abort(reason)

    def leave(self, rank: int) -> None:
        """A rank has returned: who still needs it waits in vain."""
        with self.lock:
            self._gone.add(rank)
            self._ring()
        for child in list(self._children):
            if rank in child._members:
                child.leave(child._members.index(rank))

    def _ring(self) -> None:
        for bell in self._bells:
            bell.notify_all()


def _ranks(which: set[int]) -> str:
    return f"rank{'s' * (len(which) > 1)} {', '.join(map(str, sorted(which)))}"
