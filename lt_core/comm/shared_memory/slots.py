"""Memory in which each rank has a slot that all can reach: a tensor that lies there need not be copied to be read.

segment 0   | slot of rank 0 | slot of rank 1 | ...      a place: its number, and the byte in the slot
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence

import torch
from torch import Tensor

from lt_core.comm.shared_memory.names import HEADER_BYTES

NOWHERE = -1
_OFFSETS = 1 << 44  # more bytes than a slot has


class Slots:
    """The allocations of a group, seen by `rank`; all ranks make and free them in one order."""

    def __init__(self, rank: int) -> None:
        self._rank, self._made = rank, 0
        self._segments: dict[int, list[Tensor]] = {}  # every rank's slot, as bytes
        self._known: dict[int, int] = {}  # segments by the address of our slot

    def __bool__(self) -> bool:
        """Whether there ever was one: `free` is no meeting, so ranks may differ for a while in what there still is."""
        return self._made > 0

    def add(self, memory: mmap.mmap, size: int, elements: int, kind: torch.dtype) -> Tensor:
        """Our slot of a new allocation."""
        stride = slot_stride(elements * kind.itemsize)
        slots = [
            torch.frombuffer(
                memory, dtype=torch.uint8, offset=HEADER_BYTES + r * stride, count=elements * kind.itemsize
            )
            for r in range(size)
        ]
        self._segments[self._made] = slots
        self._known[_address(slots[self._rank])] = self._made
        self._made += 1
        return slots[self._rank].view(kind)

    def free(self, x: Tensor) -> None:
        """Forget the allocation that `x` was given by; its memory goes with the last tensor in it."""
        number = self._known.pop(_address(x), None)
        if number is not None:
            del self._segments[number]

    def place(self, x: Tensor) -> int:
        """Where `x` lies; NOWHERE, if it does not lie in our slots."""
        number = self._known.get(_address(x))
        return NOWHERE if number is None else number * _OFFSETS + int(x.storage_offset()) * x.element_size()

    def views(self, places: Sequence[int], x: Tensor, to_the_end: bool = False) -> list[Tensor]:
        """What lies at each rank's place, flat, of the dtype of `x` and as long, or as long as the slot is."""
        found = []
        for rank, place in enumerate(places):
            number, offset = divmod(place, _OFFSETS)
            slot = self._segments[number][rank]
            found.append(slot[offset : slot.numel() if to_the_end else offset + x.nbytes].view(x.dtype))
        return found


def slot_stride(nbytes: int) -> int:
    """From one slot to the next: whole pages."""
    return -(-max(1, nbytes) // 4096) * 4096


def _address(x: Tensor) -> int:
    return x.untyped_storage().data_ptr()
