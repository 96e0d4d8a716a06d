"""From ranks that talk in some way to ranks that share memory."""

from __future__ import annotations

from lt_core.comm import limits
from lt_core.comm.comm import Comm
from lt_core.comm.shared_memory.ranks import SharedMemory
from lt_core.comm.shared_memory.room import Room, room_bytes
from lt_core.comm.shared_memory.segment import say, share


def over(comm: Comm) -> Comm:
    """The same ranks, processes of one host, with every verb in shared memory; `comm` itself where there is no room.

    Every rank calls it.
    """
    if comm.rank < 0:
        return comm
    memory, why = share(comm, room_bytes(comm.size), range(comm.size))
    if memory is None:
        say(comm, f"ranks talk over {comm.backend}: {why}")
        return comm
    return SharedMemory(Room(memory, comm.size), comm.rank, comm.timeout_s, comm.size > limits.cores(), comm)
