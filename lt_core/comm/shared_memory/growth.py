"""Larger stages for large tensors, so that few meetings do; a small tensor stays on a small one, in its core's cache.

Where ranks share cores a meeting waits for whoever is not running, and stages grow further.
"""

from __future__ import annotations

from torch import Tensor

from lt_core.base.traffic import Traffic
from lt_core.comm.shared_memory import copied, names
from lt_core.comm.shared_memory.phases import Phases
from lt_core.comm.shared_memory.segment import notes, share

LARGEST_BYTES = {False: 4 << 20, True: 16 << 20}  # of a stage, by whether ranks share cores
SHARE = 16  # stages take at most such a part of what is free


class Inside:
    """What `share` and `notes` need of a communicator, within a collective."""

    def __init__(self, phases: Phases) -> None:
        self._phases, self.rank, self.size, self.traffic = phases, phases.rank, phases.size, Traffic()

    def all_gather(self, out: Tensor, x: Tensor) -> None:
        """`out` becomes every rank's `x`, by rank."""
        copied.all_gather(self._phases, out, x)


class Growth:
    """The growth of a group's stages, of which all ranks come to the same answer; `largest_bytes`: up to which size."""

    def __init__(self, phases: Phases, largest_bytes: int) -> None:
        self._phases, self._largest_bytes = phases, largest_bytes

    def fit(self, nbytes: int) -> None:
        """See that a tensor of so many bytes crosses at once, or in large parts, if there is room for that."""
        stage_bytes = min(self._largest_bytes, 1 << (nbytes - 1).bit_length())
        if stage_bytes > self._phases.room.stage_bytes:
            memory, needed, inside = None, 2 * self._phases.size * stage_bytes, Inside(self._phases)
            if "no" not in notes(inside, "yes" if SHARE * needed <= names.free_bytes() else "no"):
                memory, _ = share(inside, needed, range(self._phases.size))
            if memory:
                self._phases.room.restage(memory, stage_bytes, names.HEADER_BYTES)
            else:
                self._largest_bytes = 0
