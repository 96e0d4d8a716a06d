"""A process and all below it, held to limits of time, print, number and memory, and ended whatever it did."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from typing import NamedTuple

import psutil

from lt_core.base.units import bytes_text

LOOK_S = 0.2  # how often the processes below are counted
SEEN_BYTES = 2000  # of what was printed, to say how a process died


class Limits(NamedTuple):
    """What one exercise may take."""

    seconds: float = 90.0
    printed_bytes: int = 10_000_000
    processes: int = 64
    memory_bytes: int = 6 << 30


class Watch:
    """A process and all below it, counted and listened to while it runs."""

    def __init__(self, process: subprocess.Popen[str], limits: Limits) -> None:
        self._process, self._limits = process, limits
        self._seen: set[psutil.Process] = set()
        self._printed, self._last, self._ended = 0, b"", ""

    def until_it_ends(self) -> str:
        """Hold until it ends, and give ""; or until it is over a limit, and say which."""
        assert self._process.stdout and self._process.stderr
        until_s = time.monotonic() + self._limits.seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ, self._hear_end)
            selector.register(self._process.stderr, selectors.EVENT_READ, self._hear)
            while not self._ended:
                for key, _ in selector.select(LOOK_S):
                    key.data()
                over = self._over(until_s)
                if over and not self._ended:
                    return over
        return ""

    def end(self) -> None:
        """End everything that was seen below: the keeper does, and where it cannot, we do, by id."""
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for one in self._seen:
            if one.is_running():  # this very process, not a later one with its id
                one.kill()

    def death(self) -> dict[str, str]:
        """How it ended, since it left no answer."""
        lines = self._last.decode(errors="replace").split("\n")
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return {"verdict": "died", "remark": f"its process {self._ended}{f': {said}' if said else ''}"}

    def _hear_end(self) -> None:
        assert self._process.stdout
        said = os.read(self._process.stdout.fileno(), 100).decode().split()
        code = int(said[1]) if said else -9
        self._ended = f"was ended by signal {-code}" if code < 0 else f"ended with code {code} before it had answered"
        self._drain()

    def _hear(self) -> bool:
        assert self._process.stderr
        piece = os.read(self._process.stderr.fileno(), 1 << 16)
        self._printed += len(piece)
        self._last = (self._last + piece)[-SEEN_BYTES:]
        return bool(piece)

    def _drain(self) -> None:
        """Hear what was said last: nobody below is left to say more."""
        assert self._process.stderr
        os.set_blocking(self._process.stderr.fileno(), False)
        with contextlib.suppress(BlockingIOError):
            while self._hear():
                pass

    def _over(self, until_s: float) -> str:
        below = below_of(self._process.pid)
        self._seen |= set(below)
        used = sum(map(_resident_bytes, below))
        if used > self._limits.memory_bytes:  # forks share most of theirs: seen apart only where it matters
            used = sum(map(_proportional_bytes, below))
        if time.monotonic() > until_s:
            return f"it took more than {self._limits.seconds:g} s"
        if self._printed > self._limits.printed_bytes:
            return f"it printed more than {bytes_text(self._limits.printed_bytes)}"
        if len(below) > self._limits.processes:
            return f"it started {len(below)} processes, at most {self._limits.processes}"
        if used > self._limits.memory_bytes:
            return f"it took {bytes_text(used)} of memory, at most {bytes_text(self._limits.memory_bytes)}"
        return ""


def below_of(pid: int) -> list[psutil.Process]:
    """The processes below one."""
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.NoSuchProcess:
        return []


def _resident_bytes(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:
        return 0


def _proportional_bytes(process: psutil.Process) -> int:
    """Its own memory, and its part of what it shares; on macOS its own."""
    try:
        found = process.memory_full_info()
        return int(getattr(found, "pss", found.uss))
    except psutil.Error:
        return 0
