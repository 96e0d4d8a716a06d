"""Collectives in the order in which they were begun: done by who calls, where nothing is ahead; else by a thread.

The thread comes with the first that is begun, and ends when there has been nothing to do for a while. The process's
end waits for it (a thread that outlives the interpreter would end it by a signal), and what it waits for then ends.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable

from lt_core.base.errors import Deadline

IDLE_S = 0.2


class Begun:
    """The Work of a collective. `run`: does it; `fail(error)`: ends the group; `late()`: who has not come.

    awaited: whether somebody waits for it.
    """

    def __init__(
        self, run: Callable[[], None], timeout_s: float, fail: Callable[[BaseException], None], late: Callable[[], str]
    ) -> None:
        self._run, self.timeout_s, self._fail, self._late = run, timeout_s, fail, late
        self._over, self.awaited = threading.Event(), False
        self._error: BaseException | None = None
        self._start_s = self._end_s = time.perf_counter()

    def run(self) -> None:
        """Do it, and let go of its buffers."""
        try:
            self._run()
        except BaseException as error:  # whoever waits for it raises it
            self._error = error
        finally:
            self._end_s, self._run = time.perf_counter(), _nothing
            self._over.set()

    def wait(self) -> None:
        """Hold until it is over. Raises what went wrong; `Deadline`."""
        self.awaited = True
        if not self._over.wait(self.timeout_s):
            error = Deadline(self._late())
            self._fail(error)
            raise error
        if self._error:
            raise self._error

    def span(self) -> tuple[float, float]:
        """(start, end) in seconds of `time.perf_counter`, once waited for."""
        return self._start_s, self._end_s


class Lane:
    """One collective after the other."""

    def __init__(self) -> None:
        self._changing, self._turn = threading.Lock(), threading.Lock()
        self._ahead: queue.SimpleQueue[Begun] = queue.SimpleQueue()
        self._waiting, self._served = 0, False

    def now(self, run: Callable[[], None]) -> bool:
        """Do it here and now, if nothing is ahead of it; whether it was done."""
        with self._changing:
            if self._waiting or not self._turn.acquire(blocking=False):
                return False
        try:
            run()
        finally:
            self._turn.release()
        return True

    def later(self, begun: Begun) -> Begun:
        """Do it after what is ahead of it."""
        with self._changing:
            self._waiting += 1
            self._ahead.put(begun)
            if not self._served:
                self._served = True
                threading.Thread(target=self._serve, name="shared memory").start()
        return begun

    def _serve(self) -> None:
        while True:
            try:
                begun = self._ahead.get(timeout=IDLE_S)
            except queue.Empty:
                with self._changing:
                    if not self._waiting:
                        self._served = False
                        return  # whatever comes now has a thread of its own: two would change the order
                continue
            with self._turn:
                begun.run()
            with self._changing:
                self._waiting -= 1


def _nothing() -> None:
    """What is left to do of what is over."""
