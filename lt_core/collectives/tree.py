"""Tree all-reduce: sums climb a binomial tree to rank 0, the result climbs down again: few rounds, all of the tensor.

    round 0   1 -> 0   3 -> 2   5 -> 4   7 -> 6         [1] who has bit 0 set gives, and is done
    round 1   2 -> 0            6 -> 4                      of the others, who has bit 1 set
    round 2   4 -> 0                                        of the others, who has bit 2 set: rank 0 has it all
    round 3   0 -> 4 ...                                [2] the same rounds backwards, the same messages turned round

Law: p ranks, n bytes, alpha seconds a message, beta seconds a byte sent, gamma seconds a byte added.
    rounds    2 ceil(log2 p)
    messages  2 (p - 1) in all, of n bytes each; the root sends and takes ceil(log2 p) of them
    seconds   ceil(log2 p) (2 (alpha + beta n) + gamma n)

For small tensors: a ring of 1,024 ranks needs 2,046 rounds, the tree 20. For large ones the root's link is too narrow.

Paper: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in MPICH".
"""

from __future__ import annotations

from lt_core.base.cluster import Wire
from lt_core.base.schedule import Schedule
from lt_core.collectives.compose import there_and_back
from lt_core.collectives.rounds import ADD, Message, Round, of_rounds


def schedule(size: int) -> Schedule:
    """The tree of `size` ranks, in messages of `size` chunks each: all of the tensor."""
    return of_rounds("tree", size, there_and_back(upwards(size)))  # [1], [2]


def upwards(size: int) -> list[Round]:
    """In round k every rank that has bit k set, and no lower one, gives to the rank without that bit."""
    steps = [1 << k for k in range(law_rounds(size) // 2)]
    return [[Message(r, r - step, 0, ADD, size) for r in range(step, size, 2 * step)] for step in steps]


def law_rounds(size: int) -> int:
    """How many rounds: up and down."""
    return 2 * max(0, size - 1).bit_length()


def law_messages(size: int, elements: int, rank: int) -> int:
    """How many messages `rank` sends: one to its parent, one to each child; none where there are no elements."""
    return (_children(size, rank) + (rank > 0)) * (elements > 0)


def law_bytes(size: int, elements: int, itemsize: int, rank: int) -> int:
    """How many bytes `rank` sends: all of the tensor in each message."""
    return law_messages(size, elements, rank) * elements * itemsize


def law_seconds(size: int, nbytes: int, wire: Wire, add_s_per_byte: float = 0.0) -> float:
    """How long the all-reduce of `nbytes` takes over links that are all `wire`."""
    return law_rounds(size) // 2 * (2 * wire.seconds(nbytes) + nbytes * add_s_per_byte)


def _children(size: int, rank: int) -> int:
    """Those of rank r are r + 1, r + 2, r + 4, ... below its own lowest bit, as far as there are such ranks."""
    lowest = rank & -rank or size
    return sum(1 for k in range(size.bit_length()) if 1 << k < lowest and rank + (1 << k) < size)
