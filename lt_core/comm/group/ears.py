"""The thread that reads what ranks print, while a cell runs and between cells, so that no rank ever waits for it."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import threading
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from lt_core.comm import output
from lt_core.comm.group.streams import Heard, Stream

_READ_BYTES, _MOST_READS = 1 << 16, 100


class Ears:
    """All pipes of a group. `woken`: a descriptor that can be read when there is something to take."""

    def __init__(self, folder: Path, size: int) -> None:
        self.nonce = secrets.token_hex(8)
        self.streams = [
            Stream(output.pipe(folder / f"{file}.{rank}"), rank, name, self.nonce)
            for rank in range(size)
            for file, name in (("stdout", "out"), ("stderr", "err"))
        ]
        self.woken, self._waker = _pipe()
        self._asked, self._asker = _pipe()
        self._changed = threading.Condition()
        self._lines: list[Heard] = []
        self._late, self._quiet, self._ended = True, 0, False
        self._selector = selectors.DefaultSelector()
        for stream in self.streams:
            self.on(stream.fd, partial(self._read, stream))
        self.on(self._asked, self._answer)
        self._thread = threading.Thread(target=self._listen, daemon=True, name="ears")

    def on(self, fd: int, act: Callable[[], object]) -> None:
        """Call `act`, in the thread, when the descriptor can be read; before the start only."""
        self._selector.register(fd, selectors.EVENT_READ, act)

    def off(self, fd: int) -> None:
        """No longer; in the thread only."""
        self._selector.unregister(fd)

    def start(self) -> None:
        """Listen from now on."""
        self._thread.start()

    def begin(self) -> None:
        """A cell begins: what was heard so far is of before."""
        self._late = False

    def end(self) -> None:
        """The cell is over."""
        self._late = True

    def wake(self) -> None:
        """Let who waits for `woken` look up."""
        with contextlib.suppress(BlockingIOError):  # it is full of wake-up calls
            os.write(self._waker, b".")

    def take(self) -> list[Heard]:
        """The lines since the last time."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.woken, 4096)
        with self._changed:
            lines, self._lines = self._lines, []
        return lines

    def marked(self, ranks: Iterable[int], number: int, within_s: float) -> bool:
        """Hold until all marks of that number have come from these ranks, for so long at most."""
        mine = [stream for stream in self.streams if stream.rank in set(ranks)]
        with self._changed:
            return self._changed.wait_for(lambda: all(stream.mark >= number for stream in mine), within_s)

    def drain(self, within_s: float = 1.0) -> None:
        """Hold until everything that lies in the pipes has been read, also lines without an end."""
        with self._changed:
            wanted = self._quiet + 1
            os.write(self._asker, b".")
            self._changed.wait_for(lambda: self._quiet >= wanted, within_s)

    def forget(self, ranks: Iterable[int]) -> None:
        """Drop what these ranks still print for the cell that was interrupted."""
        with self._changed:
            for stream in self.streams:
                if stream.rank in set(ranks):
                    stream.forget()

    def last_words(self, rank: int) -> str:
        """The last line of a rank's stderr."""
        return next(s.last for s in self.streams if (s.rank, s.name) == (rank, "err"))

    def close(self) -> None:
        """Stop listening."""
        self._ended = True
        os.write(self._asker, b".")
        if self._thread.is_alive():
            self._thread.join()
        self._selector.close()
        for fd in (*(stream.fd for stream in self.streams), self.woken, self._waker, self._asked, self._asker):
            os.close(fd)

    def _listen(self) -> None:
        while not self._ended:
            for key, _ in self._selector.select():
                key.data()

    def _read(self, stream: Stream) -> bool:
        try:
            data = os.read(stream.fd, _READ_BYTES)
        except BlockingIOError:
            return False
        with self._changed:
            self._hear(stream.feed(data, self._late))
        return True

    def _hear(self, heard: list[Heard]) -> None:
        self._lines += heard
        self._changed.notify_all()
        if heard:
            self.wake()

    def _answer(self) -> None:
        """Read all there is, for `drain`; of a rank that never stops printing, so much at most."""
        os.read(self._asked, 4096)
        for stream in self.streams:
            for _ in range(_MOST_READS):
                if not self._read(stream):
                    break
            with self._changed:
                self._hear(stream.rest(self._late))
        with self._changed:
            self._quiet += 1
            self._changed.notify_all()


def _pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    return reader, writer
