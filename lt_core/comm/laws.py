"""What the backend's own collectives cost a rank: bytes and messages by the ring's law, written down in one place.

What NCCL or gloo sends inside its all-reduce is not seen at our door. Each rank of a ring talks to its right neighbour:

    reduce_scatter   p - 1 messages of n / p bytes      all_reduce   both
    all_gather       p - 1 messages of n / p bytes      broadcast    n bytes from everyone but the root's left neighbour

n: bytes of the whole tensor (the long one of the two), p: ranks. all_to_all sends each part straight to its owner.
What is small, or goes through memory, takes other ways (`small`, `shared_memory`); it is counted alike, so that a run's
bytes do not depend on its back end.
Source: Patarasuk and Yuan 2009.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from lt_core.base.traffic import Traffic


class Sent(NamedTuple):
    """What one rank sends to its right neighbour in one collective."""

    nbytes: int
    messages: int


def reduce_scatter_bytes(nbytes: int, size: int) -> int:
    """Bytes that each of `size` ranks sends; `nbytes`: the whole input."""
    return nbytes * (size - 1) // size


def all_gather_bytes(nbytes: int, size: int) -> int:
    """Bytes that each of `size` ranks sends; `nbytes`: the whole output."""
    return nbytes * (size - 1) // size


def all_reduce_bytes(nbytes: int, size: int) -> int:
    """Bytes that each of `size` ranks sends; `nbytes`: the tensor."""
    return 2 * nbytes * (size - 1) // size


def broadcast_bytes(nbytes: int, size: int, rank: int, root: int) -> int:
    """Bytes that `rank` sends: it passes the tensor on, unless the next rank is where it came from."""
    return 0 if (rank + 1) % size == root else nbytes


def sent(verb: str, nbytes: int, size: int, rank: int = 0, root: int = 0) -> Sent:
    """What `rank` sends in one call of `verb`, one of the four that run around a ring."""
    if size == 1 or nbytes == 0:
        return Sent(0, 0)
    if verb == "broadcast":
        passed_on = broadcast_bytes(nbytes, size, rank, root)
        return Sent(passed_on, 1 if passed_on else 0)
    whole = {"all_reduce": all_reduce_bytes, "reduce_scatter": reduce_scatter_bytes, "all_gather": all_gather_bytes}
    return Sent(whole[verb](nbytes, size), rounds(verb, size))


def rounds(verb: str, size: int) -> int:
    """How many messages follow each other around the ring."""
    return (2 if verb == "all_reduce" else 1) * (size - 1)


def seconds(verb: str, nbytes: int, size: int, link: Callable[[float], float]) -> float:
    """How long `verb` takes around a ring whose links take `link(nbytes)`; a broadcast flows in small parts."""
    if size == 1 or nbytes == 0:
        return 0.0
    if verb == "broadcast":
        return (size - 2) * link(0) + link(nbytes)
    return rounds(verb, size) * link(nbytes / size)


def count(traffic: Traffic, verb: str, nbytes: int, size: int, rank: int, root: int = 0, times: int = 1) -> None:
    """Note in `traffic.by_law` what `rank` sends in one call of `verb`; `times=-1` takes one back."""
    nbytes_sent, messages = sent(verb, nbytes, size, rank, root)
    if messages:
        traffic.by_law.add((rank + 1) % size, times * nbytes_sent, times * messages)


def count_all_to_all(traffic: Traffic, rank: int, part_nbytes: Sequence[int]) -> None:
    """Note in `traffic.by_law` the parts that `rank` sends: `part_nbytes[r]` bytes go to rank r."""
    for peer, nbytes in enumerate(part_nbytes):
        if peer != rank and nbytes:
            traffic.by_law.add(peer, nbytes)
