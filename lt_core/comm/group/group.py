"""The group of ranks of a notebook: started when the first cell comes, and kept, with all its variables, until the end.

group = Group(4, owner="ring.ipynb")
group.run(Cell("comm.all_reduce(x := torch.ones(2)); x"), print).values[0]      'tensor([4., 4.])'
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable

from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.comm import checks
from lt_core.comm.group.cell import Cell, Interrupted, Job, Line, Outcome, Renew, Reply, Status
from lt_core.comm.group.given import packed
from lt_core.comm.group.interrupts import Interrupts
from lt_core.comm.group.members import Members
from lt_core.comm.group.pages import Watched
from lt_core.comm.group.report import stuck_text
from lt_core.comm.group.source import compiled
from lt_core.comm.group.start import Plan, start
from lt_core.comm.group.turn import Screen, Turn
from lt_core.comm.group.verdict import verdict
from lt_core.comm.launch import resolve

START_S = 120.0


class Group:
    """`size` ranks, real processes under the real torchrun. All methods may be called from any thread.

    `backend`: "gloo", "nccl", or "auto" (nccl where there is a GPU for each rank). `owner`: what a second notebook is
    told. `shape`: wires as slow as this one. `idle_s`: a group that was not used for so long ends itself. `alone`:
    whether it refuses to stand beside another notebook's.
    """

    def __init__(
        self, size: int, backend: str = "auto", owner: str = "a notebook", shape: Wire | None = None,
        idle_s: float = 1800.0, alone: bool = True,
    ) -> None:  # fmt: skip
        checks.world_size(size)
        if backend == "threads":
            raise UserError("a group's ranks are processes", repr(backend), "auto, gloo or nccl")
        self.size, self.backend, self.owner = size, resolve(backend, size), owner
        self._plan, self._idle_s = Plan(size, self.backend, owner, shape, alone), idle_s
        self._members: Members | None = None
        self._lock = threading.RLock()
        self._number = self._generation = 0
        self._busy: dict[int, Cell] = {}  # ranks that have not come out of an earlier cell
        self._broken, self._lost = False, ""
        self._used_s, self._since_s = time.monotonic(), 0.0
        self._timer: threading.Timer | None = None

    @property
    def alive(self) -> bool:
        """Whether its processes run."""
        members = self._members
        return members is not None and not members.ended and not members.deaths

    def start(self, timeout_s: float = START_S) -> None:
        """Bring the ranks up, if they are not."""
        with self._lock, Interrupts(self._wake) as interrupted:
            self._start(timeout_s, interrupted)

    def run(
        self, cell: Cell, show: Callable[[Line], None], progress: Callable[[str], None] = lambda text: None
    ) -> Outcome:
        """What a cell gives, on its ranks; what they print is shown as it comes, and after 2 s who is where.

        Errors: `SyntaxError` before any rank runs it; `RankError` for the rank that failed first; `Interrupted`.
        """
        with self._lock, Interrupts(self._wake) as interrupted:
            ranks = self._ranks(cell)
            compiled(cell.text, cell.name)
            given = {name: packed(name, value) for name, value in cell.given.items()}
            screen = Screen(show, progress, interrupted)
            members = self._ready(cell, screen)
            number = self._next()
            turn = Turn(members, self._pages, cell, number, self._generation, ranks)
            members.ears.begin()
            members.send(ranks, Job(number, cell.text, cell.name, given, cell.wanted, cell.timeout_s))
            turn.run(screen)
            return self._judged(turn)

    def status(self) -> Status:
        """How it stands."""
        members = self._members
        if members is None or not self.alive or not members.keeper:
            return Status(self.owner, self.size, self.backend, self._since_s, os.getpid(), 0, "", alive=False)
        pids = tuple(members.pids[rank] for rank in sorted(members.pids))
        return Status(
            self.owner, self.size, self.backend, self._since_s, os.getpid(), members.keeper.pid,
            str(members.folder), alive=True, pids=pids,
        )  # fmt: skip

    def restart(self, timeout_s: float = START_S) -> None:
        """End the ranks, whatever they do, and bring up new ones without any variables."""
        self.stop()
        self.start(timeout_s)

    def stop(self) -> None:
        """End the ranks, whatever they do; nothing is left of them."""
        self._end("")

    def _end(self, why: str) -> None:
        with self._lock:
            members, self._members = self._members, None
            self._lost = why
            if self._timer:
                self._timer.cancel()
            if members:
                members.close()
                atexit.unregister(self.stop)

    def _ranks(self, cell: Cell) -> tuple[int, ...]:
        ranks = tuple(range(self.size)) if cell.ranks is None else tuple(sorted(set(cell.ranks)))
        if not ranks or ranks[0] < 0 or ranks[-1] >= self.size:
            raise UserError("the cell's ranks are not all there", list(ranks), f"some of 0 to {self.size - 1}")
        return ranks

    def _start(self, timeout_s: float, interrupted: Callable[[], bool]) -> Members:
        if self._members is None:
            self._members = start(self._plan, timeout_s, interrupted)
            self._pages = Watched(self._members.folder, self.size)
            self._number = self._generation = 0
            self._busy, self._broken, self._since_s = {}, False, time.time()
            atexit.register(self.stop)
            self._look_after(self._idle_s)
        self._used_s = time.monotonic()
        return self._members

    def _ready(self, cell: Cell, screen: Screen) -> Members:
        """A group that can take a cell."""
        if self._members:
            self._notice(self._members.hear(0))
            if not self.alive:
                deaths = [f"rank {f.rank} {f.kind}: {f.message}" for f in self._members.failures()]
                self._end(self._members.ended if not deaths else deaths[0])
        if self._members is None:
            if self._lost:
                screen.show(Line((), "err", f"a new group starts, without the variables: {self._lost}"))
            self._lost = ""
        members = self._start(START_S, screen.interrupted)
        if self._busy:
            self._wait_for_busy(members, screen)
        if self._broken:
            self._renew(members, cell, screen)
        return members

    def _notice(self, messages: list[object]) -> None:
        """Answers to earlier cells: nobody waits for them, but who gave them is free."""
        for message in messages:
            if isinstance(message, Reply):
                self._busy.pop(message.rank, None)

    def _wait_for_busy(self, members: Members, screen: Screen) -> None:
        ranks = tuple(self._busy)
        screen.show(Line((), "err", f"waiting: {stuck_text(members, self._busy[ranks[0]], ranks)}"))
        while self._busy and self.alive:
            self._notice(members.hear(1.0))
            members.ears.take()
            if screen.interrupted():
                self._end("it was ended by a second interrupt")
                raise Interrupted("interrupted again: the group was ended, and its variables with it")
        members.ears.marked(ranks, self._number, within_s=1.0)

    def _renew(self, members: Members, cell: Cell, screen: Screen) -> None:
        """New communicators, in a folder that nobody has written to; all variables stay."""
        everyone = tuple(range(self.size))
        number, self._generation = self._next(), self._generation + 1
        turn = Turn(members, self._pages, cell, number, self._generation, everyone)
        members.send(everyone, Renew(number, self._generation, cell.timeout_s))
        turn.run(screen)
        self._judged(turn)
        self._pages.forget()

    def _judged(self, turn: Turn) -> Outcome:
        came = verdict(turn)
        self._broken = came.broken
        self._busy = dict.fromkeys(turn.open, turn.cell)
        self._used_s = time.monotonic()
        if came.lost:
            self._end(came.lost)
        if came.error:
            raise came.error
        assert came.outcome
        return came.outcome

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _wake(self) -> None:
        if self._members:
            self._members.ears.wake()

    def _look_after(self, within_s: float) -> None:
        self._timer = threading.Timer(within_s, self._idle)
        self._timer.daemon = True
        self._timer.start()

    def _idle(self) -> None:
        """End a group that nobody uses; while a cell runs, or was run meanwhile, look again later."""
        left_s = self._used_s + self._idle_s - time.monotonic()
        if not self._lock.acquire(blocking=False):
            return self._look_after(self._idle_s)
        try:
            if self._members and left_s <= 0:
                self._end(f"it was idle for {self._idle_s / 60:g} minutes")
            elif self._members:
                self._look_after(left_s)
        finally:
            self._lock.release()
