"""What the workers of one rank know together: which items may be issued, the Works they left, and the first error.

An item may be issued when all that it waits for was issued; its worker then waits for their Works. A rank on which
nothing was issued for `deadline_s` while an item waits has failed, and says what waits for what.
"""

from __future__ import annotations

import math
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from time import perf_counter

from lt_core.base.action import Action
from lt_core.base.errors import Aborted, Deadline
from lt_core.base.trace import Span
from lt_core.base.work import Over, Work
from lt_core.engine.lane import FREE, Item
from lt_core.engine.streams import holds_host


class Board:
    """Shared by the workers: `take` an item, `hold` until what it waits for is over, `put` its Work."""

    def __init__(self, items: Sequence[Item], workers: Sequence[str], deadline_s: float, abort: Callable[[str], None]):
        self.items, self.deadline_s, self.abort = items, deadline_s, abort
        self.works: list[Work | None] = [None] * len(items)
        self.over = [False] * len(items)
        self.issued: list[int] = []
        self.error: BaseException | None = None
        self._owner = [item.worker if len(workers) > 1 else workers[0] for item in items]
        self._after: list[list[int]] = [[] for _ in items]
        for k, item in enumerate(items):
            for w in item.waits:
                self._after[w].append(k)
        self._missing = [len(item.waits) for item in items]
        self._todo = Counter(self._owner)
        self._ready: dict[str, deque[int]] = {worker: deque() for worker in workers}
        for k, missing in enumerate(self._missing):
            if not missing:
                self._ready[self._owner[k]].append(k)
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._working = len(workers)
        self._watcher: threading.Thread | None = None
        self._taken: dict[str, int | None] = dict.fromkeys(workers)
        self._since_s = dict.fromkeys(workers, math.inf)  # since when a worker has been waiting
        self._last_s = perf_counter()  # when something was issued

    def take(self, worker: str) -> int | None:
        """The worker's next item, once it may be issued; None when there is none left, or another worker failed."""
        with self._changed:
            self._since_s[worker] = perf_counter()
            while not self._ready[worker] and self._todo[worker] and not self.error:
                self._changed.wait()  # `watch` ends a wait that lasts too long
            if self.error or not self._todo[worker]:
                return None
            self._todo[worker] -= 1
            self._taken[worker] = self._ready[worker].popleft()
            return self._taken[worker]

    def hold(self, worker: str, waits: Sequence[int]) -> None:
        """Until the Works of these items are over; another worker's error ends it."""
        for k in waits:
            work = self.works[k]
            assert work is not None  # what is waited for was issued before
            if holds_host(work):
                self._watch_alone()
            work.wait()
            self.over[k] = True
        if self.error:
            raise Aborted("another worker of this rank failed")
        self._since_s[worker] = math.inf

    def put(self, worker: str, k: int, work: Work) -> None:
        """Item k was issued: what waits for it may come."""
        with self._changed:
            self.works[k], self.over[k] = work, isinstance(work, Over)
            self.issued.append(k)
            self._taken[worker], self._last_s = None, perf_counter()
            for j in self._after[k]:
                self._missing[j] -= 1
                if not self._missing[j]:
                    queue = self._ready[self._owner[j]]
                    (queue.appendleft if self.items[j].worker == FREE else queue.append)(j)  # frees before allocations
            self._changed.notify_all()

    def finish(self, worker: str) -> None:
        """Until all that this worker issued is over."""
        if not self.error:
            self.hold(worker, [k for k in self.issued if self._owner[k] == worker])

    def leave(self) -> None:
        """A worker's last call; the last worker's ends the run."""
        with self._changed:
            self._working -= 1
        if not self._working:
            self._ended.set()
        if self._watcher:
            self._watcher.join()

    def fail(self, error: BaseException) -> None:
        """The first error stops all: the workers, and through `abort` whatever they are in."""
        with self._changed:
            if self.error:
                return
            self.error = error
            self._ended.set()
            self._changed.notify_all()
        try:
            self.abort(f"{type(error).__name__}: {error}")
        except Exception as second:
            error.add_note(f"and abort failed: {second}")

    def watch(self) -> None:
        """Returns when the run has ended; fails it when a wait is overdue."""
        while not self._ended.wait(self._left_s()):
            if self._left_s() <= 0:
                self.fail(Deadline(self._stuck()))

    def _watch_alone(self) -> None:
        if len(self._ready) == 1 and self._watcher is None:  # else the caller of `execute` watches
            self._watcher = threading.Thread(target=self.watch, name="watch", daemon=True)
            self._watcher.start()

    def _left_s(self) -> float:
        since_s = max(min(self._since_s.values()), self._last_s)
        return self.deadline_s + min(since_s - perf_counter(), 0.0)

    def _stuck(self) -> str:
        worker = min(self._since_s, key=lambda name: self._since_s[name])
        own = [k for k, owner in enumerate(self._owner) if owner == worker]
        k = next((k for k in (self._taken[worker], *own) if k is not None and self.works[k] is None), None)
        waits = own if k is None else self.items[k].waits
        names = ", ".join(str(self.items[w]) for w in waits if not self.over[w])
        who = "the end" if k is None else self.items[k]
        return f"rank {self.items[0].actions[0].rank}: {who} has waited {self.deadline_s:g} s for {names}"

    def spans(self, nbytes: Callable[[Action], int]) -> list[Span]:
        """A span for each action whose item is over, in the order in which they were issued."""
        made: list[Span] = []
        for k in self.issued:
            work = self.works[k]
            if work is not None and self.over[k]:
                start_s, end_s = work.span()
                made += [Span(a.rank, a.op.stream, str(a), start_s, end_s, nbytes(a), a) for a in self.items[k].actions]
        return made
