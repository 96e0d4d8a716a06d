"""What ranks print: each has a named pipe for stdout and one for stderr, read by the launching process in whole lines.

A pipe is opened before its rank starts, so what C code printed, or what was written just before a kill, is there too.
"""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from pathlib import Path
from typing import TextIO

LONGEST_LINE = 1 << 16


def pipe(path: Path) -> int:
    """Make a named pipe (0600) and open it for reading, without waiting for whom it is for."""
    os.mkfifo(path, 0o600)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


def redirect(folder: Path, rank: int) -> list[TextIO]:
    """In a rank: let descriptors 1 and 2 be its pipes in that folder, and what Python prints go there, by line."""
    streams: list[TextIO] = []
    for fd, name in ((1, "stdout"), (2, "stderr")):
        end = os.open(folder / f"{name}.{rank}", os.O_WRONLY)
        os.dup2(end, fd)
        os.close(end)
        streams.append(open(fd, "w", 1, "utf-8", "backslashreplace", closefd=False))  # noqa: SIM115
        setattr(sys, name, streams[-1])
    return streams


def lines(fd: int, rest: bytes) -> tuple[list[bytes], bytes]:
    """What can be read now, as whole lines, and the line that has only begun (`rest` of the next call)."""
    data = rest
    while True:
        try:
            read = os.read(fd, 1 << 16)
        except BlockingIOError:
            break
        data += read
        if len(read) < 1 << 16:
            break
    *whole, begun = data.split(b"\n")
    return (whole, begun) if len(begun) <= LONGEST_LINE else ([*whole, begun], b"")


def flush() -> None:
    """Write out what C code of this process has printed."""
    _c().fflush(None)


def ending(text: str) -> str:
    """The last lines of torchrun's log, for the end of an error's text."""
    said = [line for line in text.splitlines() if line.strip()][-5:]
    return "; torchrun said:\n" + "\n".join(said) if said else ""


@cache
def _c() -> ctypes.CDLL:
    return ctypes.CDLL(None)


class Passed:
    """A rank's stdout or stderr (`name`), passed on to this process's; `last` is the last line that said anything."""

    def __init__(self, path: Path, name: str) -> None:
        self.fd, self.name, self.last = pipe(path), name, ""
        self._rest = b""

    def pump(self) -> None:
        """Pass on the whole lines that came."""
        whole, self._rest = lines(self.fd, self._rest)
        self._pass_on(whole)

    def close(self) -> None:
        """Pass on the rest, with or without the end of its line."""
        self.pump()
        self._pass_on([self._rest] if self._rest else [])
        os.close(self.fd)

    def _pass_on(self, whole: list[bytes]) -> None:
        texts = [line.decode("utf-8", "replace") for line in whole]
        self.last = next((text.strip() for text in reversed(texts) if text.strip()), self.last)
        stream = getattr(sys, self.name)  # looked up each time: notebooks and test runners exchange it
        if texts and stream is not None:  # a daemon has none
            encoding = getattr(stream, "encoding", None) or "utf-8"
            said = "".join(f"{text}\n" for text in texts).encode(encoding, "backslashreplace")
            stream.write(said.decode(encoding))
            stream.flush()
