"""What ranks print, on the screen while they run, and as one stable text in the notebook that is saved.

while a cell runs   the last lines as they come, and who is where       redrawn at most 10 times a second
afterwards          all lines, sorted by rank, and the values           one output, the same in every run
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol, Self

from lt_core.comm.group import Line, settled
from lt_core.magics.paper import Paper
from lt_core.magics.words import bounded, given, printed

REDRAW_S = 0.1
WINDOW, WIDTH = 40, 500  # lines, characters


class Screen(Protocol):
    """What a cell is shown on; a context, at whose end everything is there to stay."""

    def show(self, line: Line) -> None:
        """A line that was printed."""

    def progress(self, text: str) -> None:
        """Where everybody is; the next such text, or the end, takes its place."""

    def say(self, text: str) -> None:
        """A sentence about the cell, below what it printed."""

    def values(self, values: Mapping[int, str]) -> None:
        """What the last expression was worth, by rank."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Live:
    """The screen of a notebook. A thread of its own draws, so that whoever shows something never waits for it."""

    def __init__(self, paper: Paper) -> None:
        self._paper, self._lock, self._ended = paper, threading.Lock(), threading.Event()
        self._lines: list[Line] = []
        self._states: dict[tuple[tuple[int, ...], str], Line] = {}  # of lines that are written over and over
        self._values: list[str] = []
        self._said: list[str] = []
        self._progress, self._changed = "", False
        self._painter: threading.Thread | None = None

    def show(self, line: Line) -> None:
        """A line that was printed; one that ends in a carriage return makes room for the next of the same ranks."""
        with self._lock:
            self._states.pop((line.ranks, line.stream), None)
            if line.text.endswith("\r"):
                self._states[line.ranks, line.stream] = line
            else:
                self._lines.append(line)
            self._progress, self._changed = "", True
        self._paint()

    def progress(self, text: str) -> None:
        """Where everybody is."""
        with self._lock:
            self._progress, self._changed = text, True
        self._paint()

    def say(self, text: str) -> None:
        """A sentence about the cell."""
        self._said.append(text)

    def values(self, values: Mapping[int, str]) -> None:
        """What the last expression was worth."""
        self._values = given(values)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._painter:
            self._painter.join()
        self._paper.keep(bounded([*map(printed, settled(self._lines)), *self._values, *self._said]))

    def _paint(self) -> None:
        if self._painter is None:
            self._painter = threading.Thread(target=self._painting, daemon=True, name="painter")
            self._painter.start()

    def _painting(self) -> None:
        while not self._ended.wait(REDRAW_S):
            with self._lock:
                text, self._changed = self._now() if self._changed else "", False
            if text:
                self._paper.draw(text)

    def _now(self) -> str:
        left_out = max(0, len(self._lines) - WINDOW)
        above = [f"... {left_out:,} lines above"] * (left_out > 0)
        shown = [*self._lines[left_out:], *self._states.values()]
        below = [f"... {self._progress}"] * bool(self._progress)
        return "\n".join([*above, *(cut(printed(line)) for line in shown), *below])


class Printed:
    """The screen of a terminal: what comes is printed, and stays."""

    def show(self, line: Line) -> None:
        """A line that was printed."""
        if not line.text.endswith("\r"):
            print(printed(line), flush=True)

    def progress(self, text: str) -> None:
        """Where everybody is: too much for a terminal, which cannot take it back."""

    def say(self, text: str) -> None:
        """A sentence about the cell."""
        print(text)

    def values(self, values: Mapping[int, str]) -> None:
        """What the last expression was worth."""
        for text in given(values):
            print(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


def cut(text: str) -> str:
    """A line as far as a screen has use for it."""
    return text if len(text) <= WIDTH else f"{text[:WIDTH]} ..."
