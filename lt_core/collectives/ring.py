"""Ring all-reduce: each rank only ever talks to its right-hand neighbour, so every link works all the time.

    0 --> 1 --> 2 --> 3         The tensor is cut into p chunks a b c d, which set out from p different ranks.
    ^                 |         [1] Each goes round once to be summed: who takes it adds its own and passes it on.
    +-----------------+         [2] Each goes round once more to be told: who takes it keeps it and passes it on.

    chunk a, p = 4    [1]  0 --a0--> 1 --a0+a1--> 2 --a0+a1+a2--> 3    [2]  3 --A--> 0 --A--> 1 --A--> 2
    round                      0          1             2                       3        4        5

Law: p ranks, n bytes, alpha seconds a message, beta seconds a byte sent, gamma seconds a byte added.
    rounds    2 (p - 1)
    bytes     2 n (p - 1) / p     sent by each rank; no all-reduce sends less
    seconds   2 (p - 1) (alpha + beta n / p) + (p - 1) gamma n / p

Paper: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations"; brought to deep
learning by Gibiansky (Baidu) 2017, "Bringing HPC techniques to deep learning".
"""

from __future__ import annotations

from collections.abc import Iterator

from lt_core.base.action import Op
from lt_core.base.cluster import Wire
from lt_core.base.schedule import Schedule
from lt_core.base.units import bounds
from lt_core.collectives.rounds import ADD, COPY, Message, Round, of_rounds


def schedule(size: int) -> Schedule:
    """The ring of `size` ranks over `size` chunks: `ring.schedule(4).grid()` draws it."""
    return of_rounds("ring", size, rounds(size))


def rounds(size: int) -> list[Round]:
    """The same as rounds: what larger algorithms are made of."""
    return [*once_round(size, ADD, 0), *once_round(size, COPY, 1)]  # [1], [2]


def once_round(size: int, take: Op, first: int) -> Iterator[Round]:
    """p - 1 rounds; in round k rank r sends chunk r + first - k, which is the one that it took in round k - 1."""
    for k in range(size - 1):
        yield [Message(r, (r + 1) % size, (r + first - k) % size, take) for r in range(size)]


def law_rounds(size: int) -> int:
    """How many rounds: once round and once round again."""
    return 2 * (size - 1)


def law_messages(size: int, elements: int, rank: int) -> int:
    """How many messages `rank` sends: 2 (p - 1), fewer where chunks have no elements, for these are not sent."""
    return 2 * min(size, elements) - sum(1 for left in _left_out(size, elements, rank) if left)


def law_bytes(size: int, elements: int, itemsize: int, rank: int) -> int:
    """How many bytes `rank` sends: 2 n (p - 1) / p, exactly so also where the chunks are uneven."""
    return (2 * elements - sum(_left_out(size, elements, rank))) * itemsize


def _left_out(size: int, elements: int, rank: int) -> tuple[int, int]:
    """Elements of the one chunk that `rank` does not send in [1] and in [2]: there its journey ends at `rank`."""
    (a, b), (c, d) = (bounds(elements, (rank + k) % size, size) for k in (1, 2))
    return b - a, d - c


def law_seconds(size: int, nbytes: float, wire: Wire, add_s_per_byte: float = 0.0) -> float:
    """How long the all-reduce of `nbytes` takes over links that are all `wire`, exactly so where chunks are even."""
    chunk_bytes = nbytes / size
    message_s = wire.latency_s + chunk_bytes / wire.bytes_per_s
    return 2 * (size - 1) * message_s + (size - 1) * chunk_bytes * add_s_per_byte
