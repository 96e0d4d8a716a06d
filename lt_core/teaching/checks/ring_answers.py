"""Right answers to lab 20's ring, of different shape: in the open, as schedules, and one without a ring."""

from __future__ import annotations

import torch
from torch import Tensor

from lt_core.base.action import Op
from lt_core.base.units import bounds
from lt_core.collectives import machine
from lt_core.collectives.ring import once_round
from lt_core.collectives.rounds import ADD, COPY, of_rounds
from lt_core.comm.comm import Comm


def reduce_scatter(comm: Comm, x: Tensor) -> Tensor:
    """The ring in the open, on a copy."""
    return once(comm, x.clone(), 0, add=True)


def all_gather(comm: Comm, y: Tensor) -> Tensor:
    """The same loop, keeping what comes."""
    return once(comm, y.clone(), 1, add=False)


def all_reduce(comm: Comm, x: Tensor) -> Tensor:
    """One half after the other."""
    return all_gather(comm, reduce_scatter(comm, x))


def scheduled_reduce_scatter(comm: Comm, x: Tensor) -> Tensor:
    """The same rounds as a schedule."""
    return _scheduled(comm, x, ADD, 0)


def scheduled_all_gather(comm: Comm, y: Tensor) -> Tensor:
    """The same rounds as a schedule."""
    return _scheduled(comm, y, COPY, 1)


def scheduled_all_reduce(comm: Comm, x: Tensor) -> Tensor:
    """The same rounds as schedules."""
    return _scheduled(comm, _scheduled(comm, x, ADD, 0), COPY, 1)


def straight_reduce_scatter(comm: Comm, x: Tensor) -> Tensor:
    """Each chunk straight to its owner: no ring, the same counts."""
    p, parts = comm.size, _parts(x, comm.size)
    mine = parts[(comm.rank + 1) % p]
    others = [r for r in range(p) if r != comm.rank]
    came = [torch.empty_like(mine) for _ in others]
    comm.exchange([(parts[(r + 1) % p], r) for r in others], list(zip(came, others, strict=True)))
    parts[(comm.rank + 1) % p] = mine + sum(came)
    return torch.cat(parts)


def once(comm: Comm, y: Tensor, first: int, add: bool) -> Tensor:
    """Once round the ring, in y: rank r begins with chunk r + first, and adds what comes or keeps it."""
    r, p = comm.rank, comm.size
    for k in range(p - 1):
        came = passed_on(comm, chunk(y, r + first - k, p), chunk(y, r + first - k - 1, p))
        into = chunk(y, r + first - k - 1, p)
        into.copy_(into + came if add else came)
    return y


def passed_on(comm: Comm, out: Tensor, like: Tensor) -> Tensor:
    """What comes from the left while `out` goes to the right."""
    came = torch.empty_like(like)
    comm.exchange([(out, (comm.rank + 1) % comm.size)], [(came, (comm.rank - 1) % comm.size)])
    return came


def chunk(x: Tensor, index: int, parts: int) -> Tensor:
    """Chunk `index` modulo `parts`, as a view."""
    low, high = bounds(x.numel(), index % parts, parts)
    return x[low:high]


def _scheduled(comm: Comm, x: Tensor, take: Op, first: int) -> Tensor:
    y = x.clone(memory_format=torch.contiguous_format)
    rounds = once_round(comm.size, take, first)
    machine.run(comm, y, of_rounds("half a ring", comm.size, rounds), cut=comm.size)
    return y


def _parts(x: Tensor, parts: int) -> list[Tensor]:
    return [chunk(x, i, parts).clone() for i in range(parts)]


RIGHT = {
    "20.reduce_scatter": (reduce_scatter, scheduled_reduce_scatter, straight_reduce_scatter),
    "20.all_gather": (all_gather, scheduled_all_gather),
    "20.all_reduce": (all_reduce, scheduled_all_reduce),
}
