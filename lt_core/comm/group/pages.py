"""A page of shared memory for each rank, which says what it waits in; others read it without asking the rank.

page.2      one record for each wait under way (a rank may have several threads); an empty one says nothing
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
import zlib
from pathlib import Path
from typing import NamedTuple

from lt_core.comm import host
from lt_core.comm.contract.pages import BEGUN, Pages, pages_bytes

_SLOTS, _SLOT = 16, 1024  # bytes: room for the names of some 200 ranks
_HEAD = struct.Struct("<II")  # checksum, length
_NOTHING, _BREAK = bytes(_HEAD.size), "\x1f"


class Where(NamedTuple):
    """A wait: in which group of which ranks, since when (`time.monotonic`), at which line of the cell (0: none).

    `number`: of the collective in its group; 0 for an exchange, whose `ends` are (kind, peer, number of the message).
    `before`: how many collectives of its group this rank had begun before the cell.
    """

    group: str
    members: tuple[int, ...]
    number: int
    line: int
    since_s: float
    text: str
    ends: tuple[tuple[int, int, int], ...] = ()
    before: int = 0

    def __str__(self) -> str:
        which = f"{self.text}{self._which()}" if self.number else self.text
        return f"{which}, line {self.line}" if self.line else which

    def _which(self) -> str:
        own = self.number - self.before
        return f" (collective {own} of this cell)" if own > 0 else " (begun by an earlier cell)"


class Page:
    """A rank's own page."""

    def __init__(self, path: Path) -> None:
        self._memory = _mapped(path, _SLOTS * _SLOT)
        self._free, self._lock = [slot * _SLOT for slot in range(_SLOTS)], threading.Lock()

    def inside(self, where: Where) -> Inside:
        """A context in which a wait is under way."""
        return Inside(self, where)

    def write(self, where: Where) -> int:
        """Say that a wait is under way; its slot, -1 if there is none."""
        with self._lock:
            at = self._free.pop() if self._free else -1
        if at >= 0:
            record = _written(where)
            self._memory[at : at + len(record)] = record
        return at

    def clear(self, at: int) -> None:
        """Say that it is over."""
        if at >= 0:
            self._memory[at : at + _HEAD.size] = _NOTHING
            self._free.append(at)


class Inside:
    """A wait as a context."""

    __slots__ = ("_at", "_page", "_where")

    def __init__(self, page: Page, where: Where) -> None:
        self._page, self._where = page, where

    def __enter__(self) -> None:
        self._at = self._page.write(self._where)

    def __exit__(self, *_: object) -> None:
        self._page.clear(self._at)


class Watched:
    """The pages of all ranks, as others read them."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder, self._size = folder, size
        self._memory = [_mapped(folder / f"page.{rank}", _SLOTS * _SLOT) for rank in range(size)]
        self._groups: dict[tuple[int, str], Pages] = {}

    def waits(self, rank: int) -> list[Where]:
        """What a rank waits in, the longest wait first."""
        memory = self._memory[rank]
        slots = [memory[at : at + _SLOT] for at in range(0, _SLOTS * _SLOT, _SLOT)]
        return sorted((w for slot in slots if (w := _read(slot))), key=lambda where: where.since_s)

    def missing(self, where: Where, rank: int, generation: int) -> list[int]:
        """Which ranks have not come to what `rank` waits in."""
        pages = self._group(where, generation)
        if pages is None:
            return []
        me = where.members.index(rank)
        if where.number:
            return [r for i, r in enumerate(where.members) if pages.head(i, BEGUN) < where.number]
        open_ends = [peer for kind, peer, number in where.ends if pages.ends(1 - kind, peer, me) < number]
        return sorted({where.members[peer] for peer in open_ends})

    def forget(self) -> None:
        """Its groups are of the past."""
        self._groups.clear()

    def _group(self, where: Where, generation: int) -> Pages | None:
        key = (generation, where.group)
        path = group_path(generation_folder(self._folder, generation), where.group)
        if key not in self._groups and path.exists():
            size = len(where.members)
            self._groups[key] = Pages(_mapped(path, pages_bytes(size)), size, 0)
        return self._groups.get(key)


def generation_folder(folder: Path, generation: int) -> Path:
    """Where the communicators of a generation meet: each in files of its own, which none has written to before."""
    return folder / f"generation.{generation}"


def group_path(folder: Path, group: str) -> Path:
    """The file of a group's pages."""
    return folder / f"pages.{group}"


def group_pages(folder: Path, group: str, size: int, rank: int) -> Pages:
    """The pages on which the ranks of a group say what they call."""
    return Pages(_mapped(group_path(folder, group), pages_bytes(size)), size, rank)


def now() -> float:
    """The clock of all processes of a host."""
    return time.monotonic()


def _mapped(path: Path, nbytes: int) -> mmap.mmap:
    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
        host.allocate(file.fileno(), nbytes)
        return mmap.mmap(file.fileno(), nbytes)


def _written(where: Where) -> bytes:
    group, members, number, line, since_s, text, ends, before = where
    each = ";".join([f"{kind},{peer},{number}" for kind, peer, number in ends[:8]])
    fields = (group, ",".join(map(str, members)), str(number), str(before), str(line), repr(since_s), each, text)
    body = _BREAK.join(fields).encode()[: _SLOT - _HEAD.size]
    return _HEAD.pack(zlib.crc32(body), len(body)) + body


def _read(slot: bytes) -> Where | None:
    """The wait of a record, or None where there is none, it is half written, or it had no room."""
    checksum, length = _HEAD.unpack_from(slot)
    body = slot[_HEAD.size : _HEAD.size + length]
    if not length or zlib.crc32(body) != checksum:
        return None
    fields = body.decode(errors="replace").split(_BREAK, 7)
    if len(fields) < 8:
        return None
    group, members, number, before, line, since_s, ends, text = fields
    kinds = tuple(tuple(map(int, end.split(","))) for end in ends.split(";") if end)
    ranks = tuple(map(int, members.split(",")))
    return Where(group, ranks, int(number), int(line), float(since_s), text, kinds, int(before))  # type: ignore[arg-type]
