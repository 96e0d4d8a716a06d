"""The four collectives with a root, as stars: the root talks to one rank after the other.

    BROADCAST  root --x--> r      REDUCE  r --x--> root, which adds       x: all of the tensor
    SCATTER    root --r--> r      GATHER  r --r--> root, which keeps      r: the chunk of rank r alone

They are the first sketch and the oracle of the trees. A root is always a rank of the communicator that is handed in,
0 .. size - 1, also where that is a subset of another. Results are new tensors, and no gradient flows through.

Law: p ranks, n bytes, alpha seconds a message, beta seconds a byte sent, gamma seconds a byte added. A message has
m = n bytes (broadcast, reduce) or m = n / p (scatter, gather).
    rounds    p - 1
    messages  p - 1 in all: the root's, or one of each other rank
    seconds   (p - 1) (alpha + beta m), and for a reduce (p - 1) gamma m
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from lt_core.base.action import Op
from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Trace
from lt_core.base.units import bounds
from lt_core.collectives.buffers import copied
from lt_core.collectives.machine import run
from lt_core.collectives.rounds import ADD, COPY, Message, Round, of_rounds
from lt_core.comm.checks import plain
from lt_core.comm.comm import Comm


class Star(NamedTuple):
    """One of the four: whether the root sends or the others do, all of the tensor or a rank's chunk, and what for."""

    name: str
    outward: bool
    whole: bool
    take: Op

    def schedule(self, size: int, root: int = 0) -> Schedule:
        """The star of `size` ranks round `root`, over `size` chunks."""
        return of_rounds(self.name, size, self.rounds(size, root))

    def rounds(self, size: int, root: int = 0) -> list[Round]:
        """A message a round, by rank. Errors: a root that is none of the ranks."""
        if size > 0 and not 0 <= root < size:
            raise UserError(f"{self.name} has no root {root}", expected=f"a rank of this communicator, 0 to {size - 1}")
        return [[self._message(root, r, size)] for r in range(size) if r != root]

    def _message(self, root: int, rank: int, size: int) -> Message:
        sender, receiver = (root, rank) if self.outward else (rank, root)
        unit, count = (0, size) if self.whole else (rank, 1)
        return Message(sender, receiver, unit, self.take, count)

    def law_rounds(self, size: int) -> int:
        """How many rounds: each rank but the root has its own."""
        return size - 1

    def law_messages(self, size: int, elements: int, rank: int, root: int = 0) -> int:
        """How many messages `rank` sends; none of them is empty."""
        return sum(1 for part in self._parts(size, elements, rank, root) if part)

    def law_bytes(self, size: int, elements: int, itemsize: int, rank: int, root: int = 0) -> int:
        """How many bytes `rank` sends."""
        return itemsize * sum(self._parts(size, elements, rank, root))

    def _parts(self, size: int, elements: int, rank: int, root: int) -> list[int]:
        """Elements of each message that `rank` sends."""
        others = [r for r in range(size) if r != root]
        meant = others if self.outward else [rank]
        cuts = [(0, elements) if self.whole else bounds(elements, r, size) for r in meant]
        return [high - low for low, high in cuts] if (rank == root) == self.outward else []

    def law_seconds(self, size: int, nbytes: int, wire: Wire, add_s_per_byte: float = 0.0) -> float:
        """How long it takes over links that are all `wire`, exactly so where chunks are even."""
        message_bytes = nbytes if self.whole else nbytes / size
        add_s = add_s_per_byte * message_bytes if self.take is ADD else 0.0
        return (size - 1) * (wire.latency_s + message_bytes / wire.bytes_per_s + add_s)


BROADCAST = Star("broadcast", outward=True, whole=True, take=COPY)
REDUCE = Star("reduce", outward=False, whole=True, take=ADD)
SCATTER = Star("scatter", outward=True, whole=False, take=COPY)
GATHER = Star("gather", outward=False, whole=False, take=COPY)


def broadcast(comm: Comm, x: Tensor, root: int = 0, trace: Trace | None = None) -> Tensor:
    """Rank `root`'s x, on every rank. x: any shape; on the others it gives shape and dtype, and is left as it was."""
    flat = copied(x)
    run(comm, flat, BROADCAST.schedule(comm.size, root), trace)
    return flat.view(x.shape)


def reduce(comm: Comm, x: Tensor, root: int = 0, trace: Trace | None = None) -> Tensor | None:
    """The sum of all ranks' x (any shape) on rank `root`, None on the others."""
    flat = copied(x)
    run(comm, flat, REDUCE.schedule(comm.size, root), trace)
    return flat.view(x.shape) if comm.rank == root else None


def scatter(comm: Comm, x: Tensor, root: int = 0, trace: Trace | None = None) -> Tensor:
    """Rows [rank * n / size, (rank + 1) * n / size) of rank `root`'s x (n, ...), a part for each rank.

    On the others x gives shape and dtype. Errors: rows that cannot be shared out evenly.
    """
    plain("scatter", x)
    if x.dim() == 0 or x.shape[0] % comm.size:
        rows = f"{x.shape[0]} rows" if x.dim() else "no rows"
        raise UserError(f"{rows} cannot be scattered over {comm.size} ranks", expected=f"a multiple of {comm.size}")
    flat = copied(x)
    run(comm, flat, SCATTER.schedule(comm.size, root), trace, cut=comm.size)
    return flat.view(comm.size, x.shape[0] // comm.size, *x.shape[1:])[comm.rank].clone()


def gather(comm: Comm, x: Tensor, root: int = 0, trace: Trace | None = None) -> Tensor | None:
    """All ranks' x (n, ...), which are of one shape, below each other by rank (size * n, ...) on rank `root`; None on
    the others. Of a tensor without dimensions: (size,)."""
    plain("gather", x)
    rows = x.shape if x.dim() else torch.Size((1,))
    whole = x.new_empty((comm.size, *rows))
    whole[comm.rank] = x.detach()
    run(comm, whole.view(-1), GATHER.schedule(comm.size, root), trace, cut=comm.size)
    return whole.view(comm.size * rows[0], *rows[1:]) if comm.rank == root else None
