"""Waiting for other ranks' pages: with a deadline, with a look at who waits for whom, and with a fault told to all.

A circle of waits is a deadlock once each rank on it has one thread only, which waits: nobody is left to end it. But a
page may be old: its rank may have what it waits for and not have had a core since. So a circle is held for one when it
was seen twice, and between the two every rank on it has looked anew, in the same wait, and found nothing. Where ranks
use several threads a circle may dissolve, so it is named when the deadline has passed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import NamedTuple, NoReturn

from lt_core.base.errors import Aborted, Deadline, Mismatch, Misuse, UserError
from lt_core.comm.contract.pages import ALONE, LOOKS, WAIT, Pages

TO_SEND, OTHER = 1, 2  # how a rank waits for a peer
_LOOK_S = 0.05  # how often a rank that waits looks at who waits for whom
_ANEW = 2  # looks of a rank until one has surely begun after ours
_KINDS = {kind.__name__: kind for kind in (Mismatch, Misuse, UserError, Deadline, Aborted)}

Missing = Mapping[int, int]  # peer -> TO_SEND or OTHER


class Step(NamedTuple):
    """A rank on a circle: the number of its wait, how often it has looked, and how it waits for the next rank."""

    rank: int
    wait: int
    looks: int
    how: int = 0

    def as_before(self, first: Step) -> bool:
        """Whether it still waits as it did."""
        return self._replace(looks=0) == first._replace(looks=0)


Circle = list[Step]


class Waits:
    """The waits of one rank, and the faults of all."""

    def __init__(self, pages: Pages, timeout_s: float, ended: Callable[[], str], abort: Callable[[str], None]) -> None:
        self._pages, self._timeout_s, self._ended, self._abort = pages, timeout_s, ended, abort
        self._lock = threading.Lock()
        self._threads = {threading.get_ident()}
        pages.set_head(ALONE, 1)
        self._now: dict[object, tuple[Missing, str]] = {}

    def enter(self) -> None:
        """Note the calling thread, and raise what some rank found wrong."""
        thread = threading.get_ident()
        if thread not in self._threads:
            self._threads.add(thread)
            self._pages.set_head(ALONE, len(self._threads) == 1)
        self.check_fault()

    def check_fault(self, seen: Exception | None = None) -> None:
        """Raise what some rank found wrong, the communicator ended here too; `seen`: what came of it here."""
        fault = self._pages.fault()
        if fault:
            kind, _, text = fault.partition("\n")
            self._abort(text)
            if type(seen) is not _KINDS[kind] or str(seen) != text:
                raise _KINDS[kind](text) from seen

    def fail(self, error: Exception) -> NoReturn:
        """Tell all ranks, end the communicator, raise: every rank raises the same, also if two find it at once."""
        self.check_fault(error)
        self._pages.tell_fault(f"{type(error).__name__}\n{error}")
        self.check_fault(error)  # another rank may have been first
        self._abort(str(error))
        raise error

    def tell_abort(self, reason: str) -> None:
        """Tell all ranks that the communicator is ended, and end it."""
        self._pages.tell_fault(f"Aborted\n{reason}")
        self._abort(reason)

    def until(self, missing: Callable[[], Missing], doing: str) -> None:
        """Hold until nobody is missing. Raises `Deadline`, `Mismatch` or `Misuse` naming who waits for whom."""
        left = missing()
        if not left:
            return
        end_s, look_s, polls = time.perf_counter() + self._timeout_s, 0.0, 0
        before: Circle | None = None
        with self._shown(left, doing) as show:
            while left:
                self.check_fault()
                pause(polls)
                polls += 1
                if (left := missing()) and time.perf_counter() > look_s:
                    show(left)
                    self._pages.add_look()
                    before, look_s = self._look(before), time.perf_counter() + _LOOK_S
                if left and time.perf_counter() > end_s:
                    self.fail(self._late(left, doing))

    def _look(self, before: Circle | None) -> Circle | None:
        """The circle of waits that we are on, as it was first seen; raises if it is a deadlock, or if all has ended."""
        if self._ended():
            raise Aborted(self._ended())
        circle = self._circle(alone=True)
        if not circle or not before or len(circle) != len(before):
            return circle
        both = list(zip(circle, before))
        if not all(step.as_before(first) for step, first in both):
            return circle
        if all(step.looks >= first.looks + _ANEW for step, first in both):
            self.fail(self._named(circle))
        return before

    @contextmanager
    def _shown(self, left: Missing, doing: str) -> Iterator[Callable[[Missing], None]]:
        """Our waits on our page, while they last."""
        token = object()

        def show(missing: Missing | None) -> None:
            with self._lock:
                if missing:
                    self._now[token] = missing, doing
                else:
                    self._now.pop(token, None)
                union: dict[int, int] = {}
                for waits, _ in self._now.values():
                    union.update(waits)
                self._pages.set_waits(union, "; ".join(text for _, text in self._now.values()))

        with self._lock:
            self._pages.set_head(WAIT, self._pages.head(self._pages.rank, WAIT) + 1)
        show(left)
        try:
            yield show
        finally:
            show(None)

    def _circle(self, alone: bool) -> Circle | None:
        """Ranks that wait for each other in a circle through us; `alone`: only ranks that use one thread."""
        pages, me = self._pages, self._pages.rank
        paths: list[Circle] = [[self._step(me)]]
        seen = {me}
        while paths:
            *path, last = paths.pop()
            if alone and not pages.head(last.rank, ALONE):
                continue
            for peer in range(pages.size):
                how = pages.waits(last.rank, peer)
                if how and peer == me:
                    return self._if_lasting([*path, last._replace(how=how)])
                if how and peer not in seen:
                    seen.add(peer)
                    paths.append([*path, last._replace(how=how), self._step(peer)])
        return None

    def _step(self, rank: int) -> Step:
        return Step(rank, self._pages.head(rank, WAIT), self._pages.head(rank, LOOKS))

    def _if_lasting(self, circle: Circle) -> Circle | None:
        """The circle, if every rank is still in the wait that was read first."""
        return circle if all(self._pages.head(step.rank, WAIT) == step.wait for step in circle) else None

    def _named(self, circle: Circle) -> UserError:
        """The error that names a circle, from its lowest rank on."""
        first = circle.index(min(circle))
        ranks = [step.rank for step in circle[first:] + circle[: first + 1]]
        if all(step.how == TO_SEND for step in circle):
            chain = ", which itself waits to send to ".join(f"rank {r}" for r in ranks[1:])
            return Misuse(f"rank {ranks[0]} sends to {chain}", attempt="put both in one exchange")
        chain = ", which waits".join(f" in {self._pages.doing(a)} for rank {b}" for a, b in pairwise(ranks))
        return Mismatch(f"rank {ranks[0]} waits{chain}", attempt="make the same calls in one order on every rank")

    def _late(self, left: Missing, doing: str) -> Exception:
        circle = self._circle(alone=False)
        if circle and all(step.how == TO_SEND for step in circle):
            return self._named(circle)
        who = ", ".join(map(str, sorted(left)))
        others = [f"rank {r} waits in {self._pages.doing(r)}" for r in sorted(left) if self._pages.doing(r)]
        waits = f"rank {self._pages.rank} waits in {doing} for rank{'s' * (len(left) > 1)} {who}"
        return Deadline("; ".join([f"{waits}, longer than {self._timeout_s:g} s", *others]))


def pause(polls: int) -> None:
    """Let time pass between two looks at memory, which rings no bell; the more, the more looks there were."""
    time.sleep(min(1e-3, 1e-5 * 2 ** min(polls // 8, 7)))
