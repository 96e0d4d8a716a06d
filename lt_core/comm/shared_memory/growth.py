"""Larger stages for ranks that share cores: there a meeting waits for whoever is not running, so that few must do.

Where each rank has a core of its own a small stage is the better one: it stays in that core's cache.
"""

from __future__ import annotations

from torch import Tensor

from lt_core.base.traffic import Traffic
from lt_core.comm.shared_memory import copied, names
from lt_core.comm.shared_memory.phases import Phases
from lt_core.comm.shared_memory.segment import notes, share

LARGEST_BYTES = 16 << 20
SHARE = 16  # stages take at most such a part of what is free


class Inside:
    """What `share` and `notes` need of a communicator, within a collective."""

    def __init__(self, phases: Phases) -> None:
        self._phases, self.rank, self.size, self.traffic = phases, phases.rank, phases.size, Traffic()

    def all_gather(self, out: Tensor, x: Tensor) -> None:
        """`out` becomes every rank's `x`, by rank."""
        copied.all_gather(self._phases, out, x)


class Growth:
    """The growth of a group's stages, of which all ranks come to the same answer."""

    def __init__(self, phases: Phases, crowded: bool) -> None:
        self._phases, self._grows = phases, crowded

    def fit(self, nbytes: int) -> None:
        """See that a tensor of so many bytes crosses at once, or in large parts, if there is room for that."""
        stage_bytes = min(LARGEST_BYTES, 1 << (nbytes - 1).bit_length())
        if self._grows and stage_bytes > self._phases.room.stage_bytes:
            memory, needed, inside = None, 2 * self._phases.size * stage_bytes, Inside(self._phases)
            if "no" not in notes(inside, "yes" if SHARE * needed <= names.free_bytes() else "no"):
                memory, _ = share(inside, needed, range(self._phases.size))
            if memory:
                self._phases.room.restage(memory, stage_bytes, names.HEADER_BYTES)
            self._grows = memory is not None
