"""A page of shared memory for each rank of one host, which only this rank writes and all read: no messages.

    calls    what a rank's collectives are, in words, by number        (a ring of records)
    ends     how many messages it sent to and wants from each peer, and of which size
    waits    for whom it waits at the moment, and in what
    fault    what it found wrong

The file lies in a private folder until all have mapped it; then it has no name, and goes with the last process.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import struct
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

SENT, WANTED = 0, 1  # the two kinds of ends
# A page's first words: the number of its wait, whether one thread uses it, its last agreed call, how often it looked,
# its last call that was begun
WAIT, ALONE, AGREED, LOOKS, BEGUN = range(5)
CALLS = 64  # of how many collectives a page has records: so far may a rank run ahead of the slowest
SIZES = 64  # of how many messages, for each link and direction
_LAP, _LAPS = 48, 2**15  # a message's record says in its upper bits how often its place was used before
_CALL, _TEXT = 256, 1024
_HEAD = 5
_BODY = struct.Struct("<IqI")  # checksum of the rest; number; hash of the whole text


class Pages:
    """The pages of all ranks, seen by `rank`. Words are of 8 bytes, so that each is read and written whole.

    lock: a descriptor of this rank's own for the file, locked while a fault is told; the pages close it.
    """

    def __init__(self, memory: mmap.mmap, size: int, rank: int, lock: int = -1) -> None:
        self.size, self.rank, self._lock = size, rank, lock
        if lock >= 0:
            weakref.finalize(self, os.close, lock)
        self._memory, self._words = memory, memoryview(memory).cast("q")
        self._page = _page_bytes(size)

    def head(self, rank: int, field: int) -> int:
        """One of the first words of a rank's page."""
        return self._words[8 + rank * self._page // 8 + field]

    def set_head(self, field: int, value: int) -> None:
        """Write one of the first words of our own page."""
        self._words[8 + self.rank * self._page // 8 + field] = value

    def add_look(self) -> None:
        """Say that we have looked once more at what we wait for, and have shown what is missing."""
        self.set_head(LOOKS, self.head(self.rank, LOOKS) + 1)

    def call(self, rank: int, number: int) -> str | None:
        """What a rank's collective `number` (from 1 on) is; empty if it is ours, None while it has not come to it."""
        at, ours = self._call_at(rank, number), self._call_at(self.rank, number)
        slot = self._memory[at : at + _CALL]  # read once: it may be half written
        return "" if slot == self._memory[ours : ours + _CALL] else _read(slot, number)

    def own_call(self, number: int) -> str:
        """What our own collective `number` is."""
        at = self._call_at(self.rank, number)
        return _read(self._memory[at : at + _CALL], number) or ""

    def set_call(self, number: int, text: str) -> None:
        """Say what our collective `number` is."""
        at = self._call_at(self.rank, number)
        self._memory[at : at + _CALL] = _written(number, text, _CALL)

    def ends(self, kind: int, rank: int, peer: int) -> int:
        """How many messages a rank has sent to `peer` (SENT) or wants from it (WANTED)."""
        return self._words[self._ends_at(kind, rank, peer)]

    def add_end(self, kind: int, peer: int, shape: int) -> int:
        """Note one more message of ours; `shape` stands for its size and dtype. Returns its number, from 1 on."""
        at = self._ends_at(kind, self.rank, peer)
        number = self._words[at] + 1
        self._words[at + 1 + number % SIZES] = _lap(number) | shape
        self._words[at] = number
        return number

    def shape(self, kind: int, rank: int, peer: int, number: int) -> int | None:
        """The shape of a rank's message `number`, or None where it is not known any more."""
        word = self._words[self._ends_at(kind, rank, peer) + 1 + number % SIZES]
        return word - _lap(number) if word >> _LAP == _lap(number) >> _LAP else None

    def waits(self, rank: int, peer: int) -> int:
        """Whether a rank waits for `peer`: 0 no, 1 to send to it, 2 for anything else."""
        return self._words[self._waits_at(rank, peer)]

    def set_waits(self, waits: dict[int, int], doing: str) -> None:
        """Say for whom we wait, how, and in what."""
        for peer in range(self.size):
            self._words[self._waits_at(self.rank, peer)] = waits.get(peer, 0)
        self._set_text(_TEXT, doing)

    def doing(self, rank: int) -> str:
        """What a rank waits in; empty when it waits for nobody."""
        return self._text(rank, _TEXT)

    def fault(self) -> str:
        """The fault that some rank told, or nothing."""
        teller = self._words[0]
        return self._text(teller - 1, 0) if teller else ""

    def tell_fault(self, text: str) -> None:
        """Tell all ranks what is wrong, unless one has done so."""
        with self._locked():
            if not self._words[0]:
                self._set_text(0, text)
                self._words[0] = self.rank + 1

    @contextmanager
    def _locked(self) -> Iterator[None]:
        if self._lock < 0:
            yield
            return
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _ends_at(self, kind: int, rank: int, peer: int) -> int:
        return 8 + rank * self._page // 8 + _HEAD + (2 * peer + kind) * (1 + SIZES)

    def _waits_at(self, rank: int, peer: int) -> int:
        return self._ends_at(0, rank, self.size) + peer

    def _call_at(self, rank: int, number: int) -> int:
        return 64 + (rank + 1) * self._page - 2 * _TEXT - (1 + number % CALLS) * _CALL

    def _text(self, rank: int, place: int) -> str:
        at = 64 + (rank + 1) * self._page - 2 * _TEXT + place
        return _read(self._memory[at : at + _TEXT], 0) or ""

    def _set_text(self, place: int, text: str) -> None:
        at = 64 + (self.rank + 1) * self._page - 2 * _TEXT + place
        self._memory[at : at + _TEXT] = _written(0, text, _TEXT)


def pages_bytes(size: int) -> int:
    """Bytes of all pages of a group of `size`."""
    return 64 + size * _page_bytes(size)


def _lap(number: int) -> int:
    """So that one look at one word tells a message's record from a later one in its place."""
    return number // SIZES % _LAPS << _LAP


def _page_bytes(size: int) -> int:
    return 8 * (_HEAD + size * (2 * (1 + SIZES) + 1)) + CALLS * _CALL + 2 * _TEXT


def _written(number: int, text: str, room: int) -> bytes:
    whole = text.encode()
    body = _BODY.pack(0, number, zlib.crc32(whole))[4:] + whole[: room - _BODY.size]
    return (zlib.crc32(body).to_bytes(4, "little") + body).ljust(room, b"\0")


def _read(slot: bytes, number: int) -> str | None:
    """The text of a record, or None while it is another one's or half written."""
    checksum, found, _ = _BODY.unpack_from(slot)
    text = slot[_BODY.size :].rstrip(b"\0")
    if found != number or zlib.crc32(slot[4 : _BODY.size] + text) != checksum:
        return None
    return text.decode(errors="replace")
