"""The user's interrupt while a cell runs: noted, so that it can be answered in order, never raised in our midst."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """A context in which SIGINT is noted; `wake` is called then. Elsewhere than in the main thread none can come."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake, self._count, self._before = wake, 0, None

    _before: Any

    def __call__(self) -> bool:
        """Whether there was one."""
        return self._count > 0

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._before)

    def _note(self, _sign: int, _frame: FrameType | None) -> None:
        self._count += 1
        self._wake()
