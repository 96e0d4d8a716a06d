"""One rank's stdout or stderr as it comes from its pipe: bytes in, whole lines and marks out.

A mark is what a rank writes after a cell: a zero byte, the group's nonce, the cell's number. Lines are cut at 64 kB, a
cell's lines bounded; bytes that are no UTF-8 are replaced.
"""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from lt_core.base.units import bytes_text

LONGEST_BYTES = 1 << 16
MOST_LINES, MOST_BYTES, LAST = 2000, 1 << 18, 20  # of a cell, a rank, a stream: shown as they come; the last ones
STATE_S = 0.1  # how often a line that is written over and over is shown
_ROOM = 64  # longer than any mark


class Heard(NamedTuple):
    """A line of a rank."""

    rank: int
    stream: str
    text: str
    late: bool
    at_s: float


class Stream:
    """A pipe's reader. `mark`: the number of the last mark."""

    def __init__(self, fd: int, rank: int, name: str, nonce: str) -> None:
        self.fd, self.rank, self.name = fd, rank, name
        self.mark, self.last, self.forgetting = 0, "", False
        self._sign = b"\0" + nonce.encode() + b" "
        self._head, self._tail, self._cut_bytes = b"", b"", 0
        self._shown_s = 0.0
        self._reset()

    def feed(self, data: bytes, late: bool) -> list[Heard]:
        """The lines that are whole now."""
        if data.startswith(self._sign) and not self._begun and data.find(b"\n") == len(data) - 1:
            self.mark, self.forgetting = int(data[len(self._sign) :]), False  # alone, as after most cells
            return []
        *whole, self._tail = (self._tail + data).split(b"\n")
        heard = [line for part in whole for line in self._line(part, late)]
        self._begin_line()
        return heard + self._state(late)

    def rest(self, late: bool) -> list[Heard]:
        """What has no end of line, and what was held back."""
        part, self._tail = self._tail, b""
        return self._line(part, late, ended=False) + self._held_back(late)

    def forget(self) -> None:
        """Drop what comes before the next mark."""
        self.forgetting, self._head, self._tail, self._cut_bytes = True, b"", self._tail[-_ROOM:], 0

    @property
    def _begun(self) -> bool:
        """Whether anything came since the last mark."""
        return bool(self._tail or self._head or self._lines or self._hidden)

    def _reset(self) -> None:
        self._lines = self._nbytes = self._hidden = self._hidden_bytes = 0
        self._latest: deque[str] = deque(maxlen=LAST)

    def _line(self, part: bytes, late: bool, ended: bool = True) -> list[Heard]:
        text, mark, number = part.partition(self._sign)
        line, cut = self._head + text, self._cut_bytes
        self._head, self._cut_bytes = b"", 0
        if len(line) > LONGEST_BYTES:
            line, cut = line[:LONGEST_BYTES], cut + len(line) - LONGEST_BYTES
        heard = self._say(line, cut, late) if line or (ended and not mark) else []
        if mark:
            heard += self._held_back(late)
            self.mark, self.forgetting = int(number), False
        return heard

    def _say(self, line: bytes, cut: int, late: bool) -> list[Heard]:
        text = line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]
        if cut:
            text += f" ... ({bytes_text(len(line) + cut)} in all)"
        self.last = text.strip() or self.last
        if self.forgetting:
            return []
        if self._lines >= MOST_LINES or self._nbytes + len(text) > MOST_BYTES:
            self._hidden, self._hidden_bytes = self._hidden + 1, self._hidden_bytes + len(line) + cut
            self._latest.append(text)
            return []
        self._lines, self._nbytes = self._lines + 1, self._nbytes + len(text)
        return [self._heard(text, late)]

    def _held_back(self, late: bool) -> list[Heard]:
        """At the end of a cell: how much was not shown, and the last lines."""
        latest, hidden, nbytes = list(self._latest), self._hidden, self._hidden_bytes
        self._reset()
        if not hidden or self.forgetting:
            return []
        left_out = hidden - len(latest)
        note = f"... {left_out} lines are not shown ({bytes_text(nbytes)} with the {len(latest)} that follow)"
        return [self._heard(text, late) for text in ([note] if left_out else []) + latest]

    def _begin_line(self) -> None:
        """Keep of a begun line what will be shown, and enough to know a mark."""
        over, self._tail = self._tail[:-_ROOM], self._tail[-_ROOM:]
        if b"\r" in over:
            self._head, self._cut_bytes, over = b"", 0, over.rpartition(b"\r")[2]
        kept = over[: LONGEST_BYTES - len(self._head)]
        self._head, self._cut_bytes = self._head + kept, self._cut_bytes + len(over) - len(kept)

    def _state(self, late: bool) -> list[Heard]:
        """A progress bar as it stands."""
        begun, now_s = self._head + self._tail, time.monotonic()
        if b"\r" not in begun or self.forgetting or now_s < self._shown_s + STATE_S:
            return []
        self._shown_s = now_s
        text = begun.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]
        return [self._heard(text + "\r", late)] if text else []

    def _heard(self, text: str, late: bool) -> Heard:
        return Heard(self.rank, self.name, text, late, time.monotonic())
