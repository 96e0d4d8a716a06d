"""What the ranks of a group have in common: a page of numbers a rank, and two stages and an outbox of bytes a rank.

    page     the phase it has reached | what it says there | why the group ended | its links' counters
    stages   what it copies for the others to read: two, of which one is filled while the other is still read
    outbox   its messages on their way, a ring of pieces for each peer

Each number is written by one rank, and whole.
"""

from __future__ import annotations

import mmap

import torch
from torch import Tensor

from lt_core.comm.shared_memory.names import HEADER_BYTES

STAGES_BYTES = [1 << power for power in range(20, 16, -1)]  # of a stage to begin with: it stays in a core's cache
SHARE = 64  # a room takes at most such a part of what is free
OUTBOX_BYTES = 1 << 20
SLOTS = 4  # pieces of a link that may be on their way
TEXT_BYTES = 1024
_LINE = 16  # words that no two writers share: two cache lines, as processors fetch them in pairs
PHASE, SAID, ENDED, PID = 0, _LINE, 2 * _LINE, 2 * _LINE + 1
HEAD, TAIL, RECORDS = 0, _LINE, 1  # of a link: counters of its sender and of its receiver, on each one's own page
_LINK = 2 * _LINE


class Room:
    """The memory of a group of `size`, seen by one of its ranks."""

    def __init__(self, memory: mmap.mmap, size: int, stage_bytes: int) -> None:
        self.size = size
        self.words = memoryview(memory)[HEADER_BYTES:].cast("q")
        self._memory, self._page = memory, _page_bytes(size)
        outboxes = HEADER_BYTES + size * self._page
        self._outboxes = outboxes
        self.restage(memory, stage_bytes, outboxes + size * OUTBOX_BYTES)

    def restage(self, memory: mmap.mmap, stage_bytes: int, offset: int) -> None:
        """Have the stages in that memory, from `offset` on."""
        self.stage_bytes = stage_bytes
        places = [[offset + (half * self.size + rank) * stage_bytes for rank in range(self.size)] for half in (0, 1)]
        stages = [[_bytes(memory, place, stage_bytes) for place in half] for half in places]
        self._typed: dict[torch.dtype, list[list[Tensor]]] = {torch.uint8: stages}

    def word(self, rank: int, field: int) -> int:
        """The place of a number of a rank's page."""
        return rank * self._page // 8 + field

    def stages(self, dtype: torch.dtype) -> list[list[Tensor]]:
        """The two stages of each rank, as elements: `[half][rank]`."""
        if dtype not in self._typed:
            self._typed[dtype] = [[stage.view(dtype) for stage in half] for half in self._typed[torch.uint8]]
        return self._typed[dtype]

    def row(self, rank: int, parity: int) -> int:
        """The place of the numbers, one for each rank, that a rank says at phases of that parity."""
        return self.word(rank, 3 * _LINE + parity * self.size)

    def link(self, owner: int, peer: int) -> int:
        """The place of the counters that `owner` writes on its page for its links with `peer`."""
        return self.word(owner, 3 * _LINE + 2 * self.size + peer * _LINK)

    def slots(self, sender: int, receiver: int) -> list[Tensor]:
        """The pieces of a link, as bytes."""
        nbytes = slot_bytes(self.size)
        lane = receiver - (receiver > sender)
        first = self._outboxes + sender * OUTBOX_BYTES + lane * SLOTS * nbytes
        return [_bytes(self._memory, first + slot * nbytes, nbytes) for slot in range(SLOTS)]

    def text(self, rank: int) -> str:
        """What a rank wrote as the reason of the end."""
        at = self._text_at(rank)
        return self._memory[at : at + TEXT_BYTES].rstrip(b"\0").decode(errors="replace")

    def set_text(self, rank: int, text: str) -> None:
        """Write it."""
        at = self._text_at(rank)
        self._memory[at : at + TEXT_BYTES] = text.encode()[:TEXT_BYTES].ljust(TEXT_BYTES, b"\0")

    def _text_at(self, rank: int) -> int:
        return HEADER_BYTES + (rank + 1) * self._page - TEXT_BYTES


def room_bytes(size: int, stage_bytes: int) -> int:
    """Bytes of the room of a group of `size`."""
    return size * (_page_bytes(size) + 2 * stage_bytes + OUTBOX_BYTES)


def fitting_stage(size: int, free_bytes: int) -> int:
    """The largest stage with which a room is a small part of what is free; the smallest, if none is."""
    fitting = [n for n in STAGES_BYTES if SHARE * room_bytes(size, n) <= free_bytes]
    return fitting[0] if fitting else STAGES_BYTES[-1]


def slot_bytes(size: int) -> int:
    """Bytes of a piece of a message."""
    return OUTBOX_BYTES // (SLOTS * max(1, size - 1)) // 64 * 64


def _page_bytes(size: int) -> int:
    words = 3 * _LINE + 2 * size + size * _LINK
    return -(-(8 * words + TEXT_BYTES) // 4096) * 4096


def _bytes(memory: mmap.mmap, offset: int, nbytes: int) -> Tensor:
    return torch.frombuffer(memory, dtype=torch.uint8, offset=offset, count=nbytes)
