"""Naive all-reduce: everyone sends all of it to rank 0, which adds, and rank 0 sends the sum to everyone.

    1 --x1--> 0    2 --x2--> 0    3 --x3--> 0        [1] a reduce: one message a round, for rank 0 takes one at a time
    0 --X---> 1    0 --X---> 2    0 --X---> 3        [2] a broadcast: all others wait again

It is right, ten seconds' work, and the oracle of every other all-reduce; rank 0's link is the whole cost.

Law: p ranks, n bytes, alpha seconds a message, beta seconds a byte sent, gamma seconds a byte added.
    rounds    2 (p - 1)
    bytes     n (p - 1) sent by rank 0 and as much taken, n sent by each other
    seconds   2 (p - 1) (alpha + beta n) + (p - 1) gamma n
"""

from __future__ import annotations

from lt_core.base.cluster import Wire
from lt_core.base.schedule import Schedule
from lt_core.collectives.basic import BROADCAST, REDUCE
from lt_core.collectives.rounds import of_rounds


def schedule(size: int) -> Schedule:
    """All to rank 0 and back, in messages of `size` chunks each: all of the tensor."""
    return of_rounds("naive", size, REDUCE.rounds(size) + BROADCAST.rounds(size))  # [1], [2]


def law_rounds(size: int) -> int:
    """How many rounds: each other rank has one to give and one to get."""
    return 2 * (size - 1)


def law_messages(size: int, elements: int, rank: int) -> int:
    """How many messages `rank` sends: p - 1 from rank 0, one from each other; none where there are no elements."""
    return (size - 1 if rank == 0 else 1) * (elements > 0)


def law_bytes(size: int, elements: int, itemsize: int, rank: int) -> int:
    """How many bytes `rank` sends: n (p - 1) from rank 0, n from each other."""
    return (size - 1 if rank == 0 else 1) * elements * itemsize


def law_seconds(size: int, nbytes: int, wire: Wire, add_s_per_byte: float = 0.0) -> float:
    """How long the all-reduce of `nbytes` takes over links that are all `wire`."""
    message_s = wire.latency_s + nbytes / wire.bytes_per_s
    return 2 * (size - 1) * message_s + (size - 1) * nbytes * add_s_per_byte
