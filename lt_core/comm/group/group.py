"""The group of ranks of a notebook: started when the first cell comes, and kept, with all its variables, until the end.

group = Group(4, owner="ring.ipynb")
group.run(Cell("x = torch.ones(2); comm.all_reduce(x); x"), print).values[0]      'tensor([4., 4.])'
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable, Sequence

from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.comm import checks
from lt_core.comm.group.cell import Cell, Line, Outcome, Status
from lt_core.comm.group.given import packed
from lt_core.comm.group.interrupts import Interrupts
from lt_core.comm.group.source import compiled
from lt_core.comm.group.standing import Standing
from lt_core.comm.group.start import STOPPED, Plan, start
from lt_core.comm.group.turn import Screen
from lt_core.comm.launch import resolve, sweep

START_S = 120.0


def unheard(_text: str) -> None:
    """Nobody wants to know who is where."""


class Group:
    """`size` ranks, real processes under the real torchrun. All methods may be called from any thread.

    `backend`: "gloo", "shared_memory", "nccl", or "auto" (nccl where there is a GPU for each rank). `owner`: what a
    second notebook is told. `shape`: wires as slow as this one. `idle_s`: a group that was not used for so long ends
    itself. `alone`: whether it refuses to stand beside another notebook's.
    """

    def __init__(
        self, size: int, backend: str = "auto", owner: str = "a notebook", shape: Wire | None = None,
        idle_s: float = 1800.0, alone: bool = True,
    ) -> None:  # fmt: skip
        checks.world_size(size)
        if backend == "threads":
            raise UserError("a group's ranks are processes", repr(backend), "auto, gloo, shared_memory or nccl")
        self.size, self.backend, self.owner = size, resolve(backend, size), owner
        self._plan, self._idle_s = Plan(size, self.backend, owner, shape, alone), idle_s
        self._standing: Standing | None = None
        self._lost = ""  # why the group before is no more
        self._lock = threading.RLock()
        self._stops: list[threading.Thread] = []  # who waits for the end of whatever holds the lock
        self._used_s = self._since_s = 0.0
        self._timer: threading.Timer | None = None

    @property
    def alive(self) -> bool:
        """Whether its processes run."""
        standing = self._standing
        return standing is not None and not (standing.over or standing.members.deaths or standing.members.tree.ended)

    def start(self, timeout_s: float = START_S) -> None:
        """Bring the ranks up, if they are not."""
        with self._lock, Interrupts(self._wake) as interrupted:
            self._ready(timeout_s, Screen(lambda line: None, unheard, interrupted))

    def run(self, cell: Cell, show: Callable[[Line], None], progress: Callable[[str], None] = unheard) -> Outcome:
        """What a cell gives, on its ranks; what they print is shown as it comes, and after 2 s who is where.

        Errors: `SyntaxError` before any rank runs it; `RankError` for the rank that failed first; `Interrupted`.
        """
        with self._lock, Interrupts(self._wake) as interrupted:
            ranks = self._ranks(cell)
            code = compiled(cell.numbered, cell.name)
            given = {name: packed(name, value) for name, value in cell.given.items()}
            screen = Screen(show, progress, interrupted)
            standing = self._ready(START_S, screen)
            try:
                return standing.run(cell, code, tuple(ranks), given, screen)
            finally:
                self._used_s = time.monotonic()
                if standing.over:
                    self._end(standing.over)

    def status(self) -> Status:
        """How it stands."""
        facts = (self.owner, self.size, self.backend, self._since_s, os.getpid())
        standing = self._standing
        if standing is None or not self.alive:
            return Status(*facts, keeper=0, folder="", alive=False)
        members = standing.members
        pids = tuple(members.pids[rank] for rank in range(self.size))
        return Status(*facts, members.tree.keeper, str(members.folder), alive=True, pids=pids)

    def restart(self, timeout_s: float = START_S) -> None:
        """End the ranks, whatever they do, and bring up new ones without any variables."""
        self.stop()
        self.start(timeout_s)

    def stop(self) -> None:
        """End the ranks, whatever they do; nothing is left of them. Who runs a cell, or starts them, is told so."""
        self._stops.append(threading.current_thread())
        try:
            if standing := self._standing:
                standing.members.end()  # before the lock, which a cell or a start under way may hold for long
            self._end("")
        finally:
            self._stops.remove(threading.current_thread())

    def _end(self, why: str) -> None:
        with self._lock:
            standing, self._standing = self._standing, None
            self._lost = why
            if self._timer:
                self._timer.cancel()
            if standing:
                standing.members.close()
                sweep(self.backend)
                atexit.unregister(self.stop)

    def _ranks(self, cell: Cell) -> Sequence[int]:
        ranks = range(self.size) if cell.ranks is None else sorted(set(cell.ranks))
        if not ranks or ranks[0] < 0 or ranks[-1] >= self.size:
            raise UserError("the cell's ranks are not all there", list(ranks), f"some of 0 to {self.size - 1}")
        return ranks

    def _ready(self, timeout_s: float, screen: Screen) -> Standing:
        """The group, standing; said where a new one takes the place of one with variables."""
        if standing := self._standing:
            try:
                standing.settle(screen)
            finally:
                if standing.over:
                    self._end(standing.over)
        if self._standing is None:
            if self._lost:
                screen.show(Line((), "err", f"a new group starts, without the variables: {self._lost}"))
            self._standing = Standing(start(self._plan, timeout_s, screen.interrupted, lambda: bool(self._stops)))
            self._lost, self._since_s = "", time.time()
            atexit.register(self.stop)
            self._look_after(self._idle_s)
            if self._stops:  # by one that came too late for the start, and too early to see what it has brought up
                self._end("")
                raise RuntimeError(STOPPED)
        self._used_s = time.monotonic()
        return self._standing

    def _wake(self) -> None:
        if self._standing:
            self._standing.members.ears.wake()

    def _look_after(self, within_s: float) -> None:
        self._timer = threading.Timer(within_s, self._idle)
        self._timer.daemon = True
        self._timer.start()

    def _idle(self) -> None:
        """End a group that nobody uses; while a cell runs, or if one was run meanwhile, look again later."""
        if not self._lock.acquire(blocking=False):
            return self._look_after(self._idle_s)
        try:
            left_s = self._used_s + self._idle_s - time.monotonic()
            if self._standing and left_s > 0:
                self._look_after(left_s)
            elif self._standing:
                self._end(f"it was idle for {self._idle_s / 60:g} minutes")
        finally:
            self._lock.release()
