"""What a learner's function prints while it is checked on many ranks and cases: the first lines, and how many more."""

from __future__ import annotations

import io
import threading

FIRST = 8
LONGEST = 200  # characters of a line


class Heard(io.TextIOBase):
    """A place to print to that keeps little, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[str] = []
        self._open = ""
        self._more = 0

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, text: str) -> int:
        """Take it in."""
        with self._lock:
            *whole, rest = (self._open + text).split("\n")
            self._open = rest[:LONGEST]
            self._more += max(0, len(self._kept) + len(whole) - FIRST)
            self._kept += [line[:LONGEST] for line in whole[: FIRST - len(self._kept)]]
            return len(text)

    def text(self) -> str:
        """What was printed, under a heading; "" where nothing was."""
        with self._lock:
            lines = [*self._kept, *([self._open] if self._open else [])]
            heading = (
                "your function printed:" if not self._more else f"your function printed ({self._more} lines more):"
            )
        return "\n  ".join([heading, *lines]) if lines else ""
