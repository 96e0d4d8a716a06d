"""The Work of a shaped verb: over when the verb beneath is, and not before the law says so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from lt_core.base.errors import Aborted, Deadline
from lt_core.base.units import seconds_text
from lt_core.base.work import Work
from lt_core.comm.comm import Comm
from lt_core.comm.shaped.ports import Time

_BLOCKED_S = 1e-3  # who waited longer for the verb beneath was held up by the real wire, and not by the shaped one


class Travelling:
    """`works`: what was begun beneath; `law`: when it travels, asked once they are over; `stopped`: by an abort."""

    def __init__(
        self, comm: Comm, words: str, works: Sequence[Work], law: Callable[[], Time], stopped: threading.Event
    ) -> None:
        self._comm, self._words, self._works, self._law, self._stopped = comm, words, works, law, stopped
        self._time: Time | None = None
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Hold until it has come. Errors: `Deadline`, if it takes longer by the law than a wait may last."""
        with self._lock:
            self._time = self._time or self._over()
        left_s = self._time.end_s - time.perf_counter()
        if left_s > self._comm.timeout_s:
            needs = f"{self._words} takes {seconds_text(left_s)} more on its shaped wire"
            raise Deadline(f"rank {self._comm.rank}: {needs}, longer than {self._comm.timeout_s:g} s")
        if left_s > 0 and self._stopped.wait(left_s):
            raise Aborted(self._comm.ended)

    def span(self) -> tuple[float, float]:
        """(start, end) in seconds of `time.perf_counter` of its time on the wire, once waited for."""
        return self._time or Time(0.0, 0.0)

    def _over(self) -> Time:
        asked_s = time.perf_counter()
        for work in self._works:
            work.wait()
        blocked = time.perf_counter() - asked_s > _BLOCKED_S
        law = self._law()
        ended_s = max(work.span()[1] for work in self._works)  # who waits may also have been woken late
        return law._replace(end_s=max(law.end_s, ended_s)) if blocked else law
