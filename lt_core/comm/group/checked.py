"""The communicator that a cell finds: ranks that call different things are told so before the backend is entered.

gloo ends the process where sizes differ, and gives wrong numbers where shapes do. So each rank first writes its call
on its own page, then reads the others': of two that differ, the later one sees it. No message, no waiting.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lt_core.base.errors import Mismatch
from lt_core.base.traffic import Traffic
from lt_core.base.work import Work
from lt_core.comm import buffers, calls, checks
from lt_core.comm.comm import Comm, Ends
from lt_core.comm.contract.agree import End
from lt_core.comm.group.pages import Page, Where, group_pages, now
from lt_core.comm.group.said import Found, Said, until
from lt_core.comm.verbs import Verbs


class Place(NamedTuple):
    """What the communicators of a rank share: its page, its folder, who makes groups, the cell that runs."""

    page: Page
    folder: Path
    make: Callable[[Callable[[], Comm]], Comm]
    cell: Callable[[], str]


class Checked(Verbs):
    """A communicator around `inner`; `members`: its ranks as the whole group numbers them."""

    def __init__(self, inner: Comm, place: Place, members: Sequence[int], timeout_s: float, name: str = "all") -> None:
        self.rank, self.size, self.backend = inner.rank, inner.size, inner.backend
        self.device: torch.device = inner.device
        self.traffic: Traffic = inner.traffic
        self.timeout_s = timeout_s
        self._inner, self._place, self._members, self._name = inner, place, tuple(members), name
        self._said = Said(group_pages(place.folder, name, self.size, self.rank), self._members)
        self._subsets: dict[tuple[int, ...], tuple[Comm, Checked, int]] = {}
        self._before = 0  # how many collectives were begun before the cell that runs

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
        before, known, made = self._subsets.get(chosen, (None, None, 0))
        if inner.rank < 0:
            return inner
        if known is None or before is not inner:  # a communicator may hand out the same group again
            name = f"{self._name}.{'-'.join(map(str, chosen))}.{made + 1}"
            known = Checked(inner, self._place, [self._members[r] for r in chosen], self.timeout_s, name)
            self._subsets[chosen] = inner, known, made + 1
        return known

    def allocate(self, elements: int, dtype: torch.dtype) -> Tensor:
        """As `buffers.allocate`: where the communicator beneath works in place; every rank asks for the same."""
        text = calls.text("allocate", torch.empty(elements, dtype=dtype, device="meta"))
        with self._place.page.inside(self._agree(text)):
            return buffers.allocate(self._inner, elements, dtype)

    def free(self, x: Tensor) -> None:
        """Give it back."""
        buffers.free(self._inner, x)

    def begin(self, timeout_s: float) -> None:
        """A cell begins: a wait may last so long in it, and its collectives are counted, here and in the subsets."""
        self.timeout_s, self._before = timeout_s, self._said.begun
        for _, subset, _ in self._subsets.values():
            subset.begin(timeout_s)

    def abort(self, reason: str) -> None:
        """End this communicator and its subsets on every rank."""
        self._inner.abort(reason)

    def waiting(self, where: Where) -> Any:
        """A context in which this rank waits there."""
        return self._place.page.inside(where._replace(since_s=now(), line=self._line(), before=self._before))

    def _post(self, verb: str, args: Sequence[Any]) -> Where:
        """Say what we call. Errors: `Mismatch` where another rank said something else."""
        if args:
            getattr(checks, verb)(self, *args)
        if verb == "exchange":
            return self._match(*args)
        return self._agree(calls.text(verb, *args))

    def _agree(self, text: str) -> Where:
        try:
            number = self._said.call(text)
            if number is None:
                number = self._held(partial(self._said.call, text), self._where(text, self._said.begun + 1))
        except Mismatch as error:
            self.abort(str(error))
            raise
        return self._where(text, number)

    def _match(self, sends: Ends, receives: Ends) -> Where:
        text = calls.exchange([self._members[p] for _, p in sends], [self._members[p] for _, p in receives])
        try:
            ends = self._said.put(sends, receives)
            if ends is None:
                older = self._said.taken(sends, receives)
                ends = self._held(partial(self._said.put, sends, receives), self._where(text, 0, older))
        except Mismatch as error:
            self.abort(str(error))
            raise
        return self._where(text, 0, ends)

    def _held(self, say: Callable[[], Found | None], where: Where) -> Found:
        """What `say` gives, once we are not too far ahead of the others to say it."""
        with self._place.page.inside(where):
            return until(say, lambda: self.ended)

    def _where(self, text: str, number: int, ends: Sequence[End] = ()) -> Where:
        open_ends = tuple([(end.kind, end.peer, end.number) for end in ends]) if ends else ()
        return Where(self._name, self._members, number, self._line(), now(), text, open_ends, self._before)

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
