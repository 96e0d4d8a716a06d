"""Recursive doubling: in every round all ranks swap everything they have with a rank twice as far away.

    round 0   0 <-> 1   2 <-> 3   4 <-> 5   6 <-> 7       everybody knows the sum of two
    round 1   0 <-> 2   1 <-> 3   4 <-> 6   5 <-> 7       ... of four
    round 2   0 <-> 4   1 <-> 5   2 <-> 6   3 <-> 7       ... of eight: the drawing of who meets whom is a butterfly

Ranks that are no power of two: q meet, the largest power of two, and the first 2 (p - q) pair up. Of each pair the odd
one gives to the even one [1], stands aside while the q meet [2], and is told in the end [3].

All ranks get the same bits: in each round both partners add the same two numbers, and a + b is b + a.

Law: q = 2^floor(log2 p) ranks meet, f = 1 where p > q and else 0; alpha, beta, gamma as for the ring.
    rounds    log2 q + 2 f
    bytes     n log2 q sent by each rank that meets, n more where it speaks for another one; n by who stands aside
    seconds   log2 q (alpha + beta n + gamma n) + f (2 (alpha + beta n) + gamma n)

Paper: Thakur, Rabenseifner and Gropp 2005, "Optimization of collective communication operations in MPICH".
"""

from __future__ import annotations

from lt_core.base.cluster import Wire
from lt_core.base.schedule import Schedule
from lt_core.collectives.compose import there_and_back
from lt_core.collectives.rounds import ADD, Message, Round, of_rounds


def schedule(size: int) -> Schedule:
    """The butterfly of `size` ranks, in messages of `size` chunks each: all of the tensor."""
    meet = meeting(size)
    swaps = [[Message(r, meet[i ^ step], 0, ADD, size) for i, r in enumerate(meet)] for step in steps(size)]
    return of_rounds("recursive doubling", size, folded(size, swaps, size))


def folded(size: int, swaps: list[Round], count: int) -> list[Round]:
    """The rounds of those who meet [2]; before and after them those who stand aside give [1] and are told [3]."""
    aside = [Message(r, r - 1, 0, ADD, count) for r in range(1, 2 * spare(size), 2)]
    return there_and_back([aside] if aside else [], swaps)


def meeting(size: int) -> list[int]:
    """The ranks that meet, a power of two: of each pair that folds the even one, and all behind the pairs."""
    return [*range(0, 2 * spare(size), 2), *range(2 * spare(size), size)]


def steps(size: int) -> list[int]:
    """How far apart partners are, round after round: 1, 2, 4, ... places in `meeting`."""
    return [1 << k for k in range(power(size).bit_length() - 1)]


def power(size: int) -> int:
    """The largest power of two that is not above `size`."""
    return 1 << (max(1, size).bit_length() - 1)


def spare(size: int) -> int:
    """How many ranks stand aside."""
    return max(1, size) - power(size)


def law_rounds(size: int) -> int:
    """How many rounds: log2 q, and two where some stand aside."""
    return len(steps(size)) + 2 * (spare(size) > 0)


def law_messages(size: int, elements: int, rank: int) -> int:
    """How many messages `rank` sends: one a round that it meets in, one more if it speaks for another; or one alone."""
    pairs = rank < 2 * spare(size)
    return (1 if pairs and rank % 2 else len(steps(size)) + pairs) * (elements > 0)


def law_bytes(size: int, elements: int, itemsize: int, rank: int) -> int:
    """How many bytes `rank` sends: all of the tensor in each message."""
    return law_messages(size, elements, rank) * elements * itemsize


def law_seconds(size: int, nbytes: int, wire: Wire, add_s_per_byte: float = 0.0) -> float:
    """How long the all-reduce of `nbytes` takes over links that are all `wire`."""
    message_s, add_s = wire.seconds(nbytes), nbytes * add_s_per_byte
    return len(steps(size)) * (message_s + add_s) + (spare(size) > 0) * (2 * message_s + add_s)
