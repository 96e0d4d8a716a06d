"""The communicator that a cell finds: ranks that call different things are told so before the backend is entered.

gloo ends the process where sizes differ, and gives wrong numbers where shapes do. So each rank first writes its call
on its own page, then reads the others': of two that differ, the later one sees it. No message, no waiting.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from lt_core.base.errors import Mismatch
from lt_core.base.traffic import Traffic
from lt_core.base.work import Work
from lt_core.comm import calls, checks
from lt_core.comm.comm import Comm, Ends
from lt_core.comm.contract.agree import Messages
from lt_core.comm.contract.pages import Pages
from lt_core.comm.group.pages import BEGUN, Page, Where, group_pages, now
from lt_core.comm.verbs import Verbs


class Place(NamedTuple):
    """What the communicators of a rank share: its page, its folder, who makes groups, the cell that runs."""

    page: Page
    folder: Path
    make: Callable[[Callable[[], Comm]], Comm]
    cell: Callable[[], str]
    timeout_s: float


class Checked(Verbs):
    """A communicator around `inner`; `members`: its ranks as the whole group numbers them."""

    def __init__(self, inner: Comm, place: Place, members: Sequence[int], name: str = "all") -> None:
        self.rank, self.size, self.backend = inner.rank, inner.size, inner.backend
        self.device: torch.device = inner.device
        self.traffic: Traffic = inner.traffic
        self.timeout_s = place.timeout_s
        self._inner, self._place, self._members, self._name = inner, place, tuple(members), name
        self._pages: Pages = group_pages(place.folder, name, self.size, self.rank)
        self._messages = Messages(self._pages)
        self._lock, self._begun = threading.Lock(), 0
        self._subsets: dict[tuple[int, ...], tuple[Comm, Comm, int]] = {}

    @property
    def ended(self) -> str:
        """Why it was aborted; empty while it lives."""
        return self._inner.ended

    def start(self, verb: str, *args: Any) -> Work:
        """The verb of that name, begun; its buffers belong to the Work until `wait()`."""
        calls.startable(verb)
        where = self._post(verb, args)
        return Begun(self._inner.start(verb, *args), self, where)

    def call(self, verb: str, *args: Any) -> None:
        """The verb of that name, until it is over: what every verb does."""
        with self._place.page.inside(self._post(verb, args)):
            getattr(self._inner, verb)(*args)

    def subset(self, ranks: Sequence[int]) -> Comm:
        """A communicator of some ranks, in the order given; every rank of this one calls it."""
        chosen = checks.subset(self, ranks)
        with self._place.page.inside(self._agree(calls.text("subset", chosen))):
            inner = self._place.make(lambda: self._inner.subset(chosen))
        before, known, made = self._subsets.get(chosen, (None, inner, 0))
        if before is not inner and inner.rank >= 0:  # a communicator may hand out the same group again
            name = f"{self._name}.{'-'.join(map(str, chosen))}.{made + 1}"
            known = Checked(inner, self._place, [self._members[r] for r in chosen], name)
            self._subsets[chosen] = inner, known, made + 1
        return known

    def abort(self, reason: str) -> None:
        """End this communicator and its subsets on every rank."""
        self._inner.abort(reason)

    def waiting(self, where: Where) -> Any:
        """A context in which this rank waits there."""
        return self._place.page.inside(where._replace(since_s=now(), line=self._line()))

    def _post(self, verb: str, args: Sequence[Any]) -> Where:
        """Say what we call. Errors: `Mismatch` where another rank said something else."""
        if args:
            getattr(checks, verb)(self, *args)
        if verb == "exchange":
            return self._match(*args)
        return self._agree(calls.text(verb, *args))

    def _agree(self, text: str) -> Where:
        with self._lock:
            self._begun += 1
            number = self._begun
            self._pages.set_call(number, text)
            self._pages.set_head(BEGUN, number)
        with self._lock:  # taking a lock is a fence: what was written is seen before the others' pages are read
            others = [(r, self._pages.call(r, number)) for r in range(self.size) if r != self.rank]
        for rank, theirs in others:
            if theirs:
                self._refuse(number, (self.rank, text), (rank, theirs))
        return Where(self._name, self._members, number, self._line(), now(), text)

    def _refuse(self, number: int, *said: tuple[int, str]) -> None:
        (one, first), (other, second) = sorted((self._members[rank], text) for rank, text in said)
        error = Mismatch(
            f"collective {number}: rank {one} calls {first}, rank {other} calls {second}",
            attempt="make the same calls in the same order on every rank",
        )
        self.abort(str(error))
        raise error

    def _match(self, sends: Ends, receives: Ends) -> Where:
        with self._lock:
            ends = self._messages.post(sends, receives)
        text = calls.exchange([self._members[p] for _, p in sends], [self._members[p] for _, p in receives])
        try:
            with self._lock:
                self._messages.missing(ends)
        except Mismatch as error:
            self.abort(str(error))
            raise
        open_ends = tuple((end.kind, end.peer, end.number) for end in ends)
        return Where(self._name, self._members, 0, self._line(), now(), text, open_ends)

    def _line(self) -> int:
        """The line of the cell that is being run, 0 outside the cell's own thread."""
        frame, cell = sys._getframe(1), self._place.cell()
        while frame is not None and frame.f_code.co_filename != cell:
            frame = frame.f_back  # type: ignore[assignment]
        return frame.f_lineno if frame is not None else 0


class Begun:
    """The Work of a verb that was started: only its `wait` is a wait."""

    def __init__(self, work: Work, comm: Checked, where: Where) -> None:
        self._work, self._comm, self._where = work, comm, where

    def wait(self) -> None:
        """Hold until it is over."""
        with self._comm.waiting(self._where):
            self._work.wait()

    def span(self) -> tuple[float, float]:
        """(start, end) in seconds of `time.perf_counter`, once waited for."""
        return self._work.span()
