"""Waiting for other ranks' pages: with a deadline, with a look at who waits for whom, and with a fault told to all.

A circle of waits is a deadlock once each rank on it has one thread only, which waits: nobody is left to end it. Where
ranks use several threads a circle may dissolve, so it is named when the deadline has passed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import NoReturn

from lt_core.base.errors import Aborted, Deadline, Mismatch, Misuse, UserError
from lt_core.comm.contract.pages import ALONE, WAIT, Pages

TO_SEND, OTHER = 1, 2  # how a rank waits for a peer
_STANDS_S = 0.2  # a circle is looked at twice, so long apart, lest it was seen while it dissolved
_KINDS = {kind.__name__: kind for kind in (Mismatch, Misuse, UserError, Deadline, Aborted)}

Missing = Mapping[int, int]  # peer -> TO_SEND or OTHER


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
        self.check()

    def check(self) -> None:
        """Raise what some rank found wrong, or that the communicator was ended."""
        self.check_fault()
        if self._ended():
            raise Aborted(self._ended())

    def check_fault(self, seen: Exception | None = None) -> None:
        """Raise what some rank found wrong; `seen`: what came of it here."""
        fault = self._pages.fault()
        if fault:
            kind, _, text = fault.partition("\n")
            if str(seen) != text:
                raise _KINDS[kind](text) from seen

    def fail(self, error: Exception) -> NoReturn:
        """Tell all ranks, end the communicator, raise: every rank raises the same."""
        self._pages.tell_fault(f"{type(error).__name__}\n{error}")
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
        end_s, look_s, polls, before = time.perf_counter() + self._timeout_s, 0.0, 0, None
        with self._shown(left, doing) as show:
            while left:
                self.check()
                time.sleep(min(1e-3, 1e-5 * 2 ** (polls // 8)))  # memory rings no bell
                polls += 1
                if (left := missing()) and time.perf_counter() > look_s:
                    show(left)
                    circle = self._circle(alone=True)
                    if circle and circle == before:
                        self.fail(self._named([rank for rank, _ in circle]))
                    before, look_s = circle, time.perf_counter() + _STANDS_S
                if left and time.perf_counter() > end_s:
                    self.fail(self._late(left, doing))

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

    def _circle(self, alone: bool, only: int = 0) -> list[tuple[int, int]] | None:
        """Ranks that wait for each other in a circle through us, each with the number of its wait."""
        pages, me = self._pages, self._pages.rank
        paths = [[me]]
        seen = {me}
        while paths:
            path = paths.pop()
            if alone and not pages.head(path[-1], ALONE):
                continue
            for peer in range(pages.size):
                how = pages.waits(path[-1], peer)
                if not how or (only and how != only):
                    continue
                if peer == me:
                    return [(rank, pages.head(rank, WAIT)) for rank in path]
                if peer not in seen:
                    seen.add(peer)
                    paths.append([*path, peer])
        return None

    def _named(self, circle: list[int]) -> UserError:
        """The error that names a circle, from its lowest rank on."""
        pages, first = self._pages, circle.index(min(circle))
        ranks = circle[first:] + circle[: first + 1]
        if all(pages.waits(a, b) == TO_SEND for a, b in pairwise(ranks)):
            chain = ", which itself waits to send to ".join(f"rank {r}" for r in ranks[1:])
            return Misuse(f"rank {ranks[0]} sends to {chain}", attempt="put both in one exchange")
        chain = ", which waits".join(f" in {pages.doing(a)} for rank {b}" for a, b in pairwise(ranks))
        return Mismatch(f"rank {ranks[0]} waits{chain}", attempt="make the same calls in one order on every rank")

    def _late(self, left: Missing, doing: str) -> Exception:
        circle = self._circle(alone=False, only=TO_SEND)
        if circle:
            return self._named([rank for rank, _ in circle])
        who = ", ".join(map(str, sorted(left)))
        others = [f"rank {r} waits in {self._pages.doing(r)}" for r in sorted(left) if self._pages.doing(r)]
        waits = f"rank {self._pages.rank} waits in {doing} for rank{'s' * (len(left) > 1)} {who}"
        return Deadline("; ".join([f"{waits}, longer than {self._timeout_s:g} s", *others]))
