"""From ranks that talk in some way to ranks that share memory."""

from __future__ import annotations

from lt_core.base.errors import UserError
from lt_core.comm import limits
from lt_core.comm.comm import Comm
from lt_core.comm.shared_memory import names
from lt_core.comm.shared_memory.growth import LARGEST_BYTES
from lt_core.comm.shared_memory.ranks import Family, SharedMemory
from lt_core.comm.shared_memory.room import Room, fitting_stage, room_bytes
from lt_core.comm.shared_memory.segment import notes, say, share

LEAST_BYTES = 1 << 16  # parts for each of many ranks have whole elements


def over(comm: Comm, stage_bytes: int | None = None) -> Comm:
    """The same ranks, processes of one host, with every verb in shared memory; `comm` itself where there is no room.

    Every rank calls it. `stage_bytes`: what a rank copies at a time, a power of two from 64 KiB on; unless given, as
    there is room, and more for large tensors. Errors: another number.
    """
    if stage_bytes is not None and (stage_bytes < LEAST_BYTES or stage_bytes & (stage_bytes - 1)):
        raise UserError("a stage of shared memory", f"{stage_bytes} bytes", f"a power of two from {LEAST_BYTES} on")
    if comm.rank < 0:
        return comm
    fitting = fitting_stage(comm.size, names.free_bytes())
    told = [note.split() for note in notes(comm, f"{fitting} {comm.size > limits.cores()}")]
    begin_bytes = stage_bytes or int(told[0][0])
    memory, why = share(comm, room_bytes(comm.size, begin_bytes), range(comm.size))
    if memory is None:
        say(comm, f"ranks talk over {comm.backend}: {why}")
        return comm
    crowded = "True" in [shared for _, shared in told]
    family = Family(crowded, 0 if stage_bytes else LARGEST_BYTES[crowded], messages=[])
    return SharedMemory(Room(memory, comm.size, begin_bytes), comm.rank, comm.timeout_s, family, comm)
