"""What ranks print, read from their pipes: between cells by a thread, so that no rank ever waits for a reader; while a
cell runs, by who waits for it, which spares it a switch of threads for each line."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from lt_core.comm import output
from lt_core.comm.group.streams import Heard, Stream

_READ_BYTES, _MOST_READS = 1 << 16, 100


class Ears:
    """All pipes of a group. `pipes`: can be read when a rank has printed; `woken`: when somebody has called `wake`."""

    def __init__(self, folder: Path, size: int) -> None:
        self.nonce = secrets.token_hex(8)
        self._lock = threading.Lock()
        self._lines: list[Heard] = []
        self._running = self._ended = False
        self._thread = threading.Thread(target=self._listen, daemon=True, name="ears")
        with contextlib.ExitStack() as opened:  # where no descriptors are left, those that were got are given back
            self.streams = [
                Stream(_closed_by(opened, output.pipe(folder / f"{file}.{rank}")), rank, name, self.nonce)
                for rank in range(size)
                for file, name in (("stdout", "out"), ("stderr", "err"))
            ]
            self.woken, self._waker = _pipe(opened)
            self._ender, self._end = _pipe(opened)
            self._pipes = opened.enter_context(selectors.DefaultSelector())
            self._selector = opened.enter_context(selectors.DefaultSelector())
            self._opened = opened.pop_all()
        for stream in self.streams:
            self._pipes.register(stream.fd, selectors.EVENT_READ, stream)
        self.pipes: int = self._pipes.fileno()
        self.on(self._ender, lambda: None)
        self.on(self.pipes, self._read_between)

    def on(self, fd: int, act: Callable[[], None]) -> None:
        """Call `act`, in the thread, when the descriptor can be read."""
        self._selector.register(fd, selectors.EVENT_READ, act)

    def off(self, fd: int) -> None:
        """No longer."""
        self._selector.unregister(fd)

    def start(self) -> None:
        """Listen from now on."""
        self._thread.start()

    @contextlib.contextmanager
    def attended(self) -> Iterator[None]:
        """A cell: what was printed until now is of before, and from now on its caller reads."""
        self.off(self.pipes)
        self.read()
        self._running = True
        try:
            yield
        finally:
            self._running = False
            self.on(self.pipes, self._read_between)

    def wake(self) -> None:
        """Let who waits for `woken` look up."""
        with contextlib.suppress(BlockingIOError):  # it is full of wake-up calls
            os.write(self._waker, b".")

    def awake(self) -> None:
        """Take the wake-up calls off."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.woken, 4096)

    def read(self, within_s: float = 0.0) -> None:
        """Read what has been printed, waiting for it so long at most."""
        with self._lock:
            for key, _ in self._pipes.select(within_s):
                self._read(key.data)

    def take(self) -> list[Heard]:
        """The lines since the last time."""
        with self._lock:
            lines, self._lines = self._lines, []
        return lines

    def marked(self, ranks: Collection[int], number: int, within_s: float) -> bool:
        """Read until all marks of that number have come from these ranks, for so long at most."""
        open_ = [stream for stream in self.streams if stream.rank in ranks and stream.mark < number]
        until_s = time.monotonic() + within_s
        while open_ and (left_s := until_s - time.monotonic()) > 0:
            self.read(left_s)
            open_ = [stream for stream in open_ if stream.mark < number]
        return not open_

    def drain(self) -> None:
        """Read all there is, lines without an end too; of a rank that never stops printing, so much at most."""
        with self._lock:
            for stream in self.streams:
                for _ in range(_MOST_READS):
                    if not self._read(stream):
                        break
                self._lines += stream.rest(late=not self._running)

    def forget(self, ranks: Iterable[int]) -> None:
        """Drop what these ranks still print for the cell that was interrupted."""
        with self._lock:
            for stream in self.streams:
                if stream.rank in set(ranks):
                    stream.forget()

    def last_words(self, rank: int) -> str:
        """The last line of a rank's stderr."""
        return next(s.last for s in self.streams if (s.rank, s.name) == (rank, "err"))

    def close(self) -> None:
        """Stop listening."""
        self._ended = True
        os.write(self._end, b".")
        if self._thread.is_alive():
            self._thread.join()
        self._opened.close()

    def _listen(self) -> None:
        while not self._ended:
            for key, _ in self._selector.select():
                key.data()

    def _read_between(self) -> None:
        with self._lock:
            if not self._running:  # else the caller of a cell that has just begun reads
                for key, _ in self._pipes.select(0):
                    self._read(key.data)

    def _read(self, stream: Stream) -> bool:
        try:
            data = os.read(stream.fd, _READ_BYTES)
        except BlockingIOError:
            return False
        self._lines += stream.feed(data, not self._running)
        return True


def _pipe(opened: contextlib.ExitStack) -> tuple[int, int]:
    reader, writer = os.pipe()
    for fd in (reader, writer):
        os.set_blocking(_closed_by(opened, fd), False)
    return reader, writer


def _closed_by(opened: contextlib.ExitStack, fd: int) -> int:
    opened.callback(os.close, fd)
    return fd
