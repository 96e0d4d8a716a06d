"""How ranks of one host get memory that all of them see: one makes a file, tells its name, and unlinks it.

rank 0    makes it, tells its name -->  . . . . . . . . . . . . . .  --> unlinks it, whatever came of it
others                              --> map it, tell whether they could
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from lt_core.base.errors import Mismatch
from lt_core.base.traffic import Traffic
from lt_core.comm.comm import Comm
from lt_core.comm.shared_memory import names
from lt_core.comm.uncounted import uncounted

NOTE_BYTES = 256


class Told(Protocol):
    """A group whose ranks can tell each other something: a communicator, or what stands for it in a collective."""

    rank: int
    size: int
    traffic: Traffic

    def all_gather(self, out: Tensor, x: Tensor) -> None:
        """`out` becomes every rank's `x`, by rank."""
        ...


def share(comm: Told, nbytes: int, members: Sequence[int]) -> tuple[mmap.mmap | None, str]:
    """`nbytes` of memory that the members have in common, or why they have none; every rank of `comm` calls it.

    All get the same answer; who is no member gets no memory. Errors: `Mismatch`, where ranks ask for different sizes.
    """
    nbytes += names.HEADER_BYTES
    with ExitStack() as until_mapped:
        note = ""
        if comm.rank == members[0]:
            note = _made(until_mapped, nbytes)
        told = _agreed(notes(comm, f"{nbytes} {note}"))[members[0]]
        memory, why = _mapped(told, nbytes) if comm.rank in members else (None, "")
        whys = notes(comm, why)
    first = next((why for why in whys if why), "")
    return (None, first) if first else (memory, "")


def notes(comm: Told, text: str) -> list[str]:
    """What every rank has to say, in at most 256 bytes."""
    mine = torch.frombuffer(bytearray(text.encode()[:NOTE_BYTES].ljust(NOTE_BYTES, b"\0")), dtype=torch.uint8)
    out = torch.empty(comm.size * NOTE_BYTES, dtype=torch.uint8)
    with uncounted(comm):
        comm.all_gather(out, mine)
    return [bytes(row.tolist()).rstrip(b"\0").decode(errors="replace") for row in out.view(comm.size, NOTE_BYTES)]


def _agreed(told: list[str]) -> list[str]:
    """What the ranks say behind the size that each of them asks for."""
    sizes, rest = zip(*(text.split(" ", 1) for text in told), strict=True)
    for rank, nbytes in enumerate(sizes):
        if nbytes != sizes[0]:
            what = f"rank 0 asks for {sizes[0]} bytes of shared memory, rank {rank} for {nbytes}"
            raise Mismatch(what, attempt="allocate the same on every rank")
    return list(rest)


def _made(until_mapped: ExitStack, nbytes: int) -> str:
    """The path of a new file; where there is no room, why, with a space in front of it."""
    if why := names.no_room(nbytes):
        return f" {why}"
    try:
        return str(until_mapped.enter_context(names.made(nbytes)))
    except OSError as error:
        return f" shared memory: {error.strerror}"


def _mapped(told: str, nbytes: int) -> tuple[mmap.mmap | None, str]:
    if told.startswith(" "):
        return None, told.strip()
    try:
        fd = os.open(Path(told), os.O_RDWR | os.O_NOFOLLOW)
        try:
            return mmap.mmap(fd, nbytes), ""
        finally:
            os.close(fd)
    except OSError as error:
        return None, f"not all ranks share memory: {error.strerror}"


def say(comm: Comm, text: str) -> None:
    """One line, of one rank."""
    if comm.rank == 0:
        print(f"lt_core: {text}", file=sys.stderr)
