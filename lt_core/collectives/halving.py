"""Halving-doubling: as few bytes as a ring sends, in about as few rounds as a tree needs.

    8 ranks, 8 chunks, rank 0:
    round 0   0 <-> 4   gives chunks 4..7, adds 0..3 to its own      [1] halving, the partner ever nearer
    round 1   0 <-> 2   gives 2 3, adds 0 1
    round 2   0 <-> 1   gives 1, adds 0: rank 0 has the sum of chunk 0
    round 3   0 <-> 1   gives 0, keeps 1                             [2] doubling, the partner ever farther
    round 4   0 <-> 2   gives 0 1, keeps 2 3
    round 5   0 <-> 4   gives 0..3, keeps 4..7

Ranks that are no power of two fold as in `doubling`: some stand aside, and are told at the end.

Law: q = 2^floor(log2 p) ranks meet, f = 1 where p > q and else 0; alpha, beta, gamma as for the ring.
    rounds    2 log2 q + 2 f
    bytes     2 n (q - 1) / q sent by each rank that meets, n more where it speaks for another; n by who stands aside
    seconds   2 log2 q alpha + (q - 1) / q (2 beta n + gamma n) + f (2 (alpha + beta n) + gamma n)

Paper: Rabenseifner 2004, "Optimization of collective reduction operations".
"""

from __future__ import annotations

from lt_core.base.cluster import Wire
from lt_core.base.schedule import Schedule
from lt_core.base.units import bounds
from lt_core.collectives.doubling import folded, meeting, power, spare, steps
from lt_core.collectives.rounds import ADD, COPY, Message, of_rounds


def schedule(size: int) -> Schedule:
    """The halving and doubling of `size` ranks, over as many chunks as ranks meet."""
    meet, near = list(enumerate(meeting(size))), steps(size)
    halving = [[Message(r, meet[i ^ d][1], given(i, d), ADD, d) for i, r in meet] for d in reversed(near)]  # [1]
    doubling = [[Message(r, meet[i ^ d][1], kept(i, d), COPY, d) for i, r in meet] for d in near]  # [2]
    return of_rounds("halving-doubling", size, folded(size, halving + doubling, power(size)))


def kept(place: int, distance: int) -> int:
    """The first of the `distance` chunks that who meets at `place` keeps before its partner at that distance."""
    return place & ~(distance - 1)


def given(place: int, distance: int) -> int:
    """The first of those that it gives: the ones that its partner keeps."""
    return kept(place ^ distance, distance)


def law_rounds(size: int) -> int:
    """How many rounds: there and back, and two where some stand aside."""
    return 2 * len(steps(size)) + 2 * (spare(size) > 0)


def law_messages(size: int, elements: int, rank: int) -> int:
    """How many messages `rank` sends; chunks without elements are not sent."""
    return sum(1 for part in _parts(size, elements, rank) if part)


def law_bytes(size: int, elements: int, itemsize: int, rank: int) -> int:
    """How many bytes `rank` sends, exactly so also where chunks are uneven."""
    return sum(_parts(size, elements, rank)) * itemsize


def _parts(size: int, elements: int, rank: int) -> list[int]:
    """Elements of each message that `rank` sends."""
    meet, pairs = meeting(size), rank < 2 * spare(size)
    if rank not in meet:
        return [elements]
    place = meet.index(rank)
    cuts = [bounds(elements, first(place, d), power(size), d) for d in steps(size) for first in (given, kept)]
    return [high - low for low, high in cuts] + [elements] * pairs


def law_seconds(size: int, nbytes: int, wire: Wire, add_s_per_byte: float = 0.0) -> float:
    """How long the all-reduce of `nbytes` takes over links that are all `wire`, exactly so where chunks are even."""
    moved = nbytes * (power(size) - 1) / power(size)
    swaps_s = 2 * len(steps(size)) * wire.latency_s + moved * (2 / wire.bytes_per_s + add_s_per_byte)
    return swaps_s + (spare(size) > 0) * (2 * wire.seconds(nbytes) + nbytes * add_s_per_byte)
