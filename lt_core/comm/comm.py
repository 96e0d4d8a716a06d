"""The only door through which bytes leave a rank, hence the only place where they are counted.

    exchange([(x, 1)], [(y, 3)])     send x to rank 1 and receive y from rank 3, in one batch

No tags: what a rank receives from a peer comes in the order in which that peer sent it. Ranks and peers are those of
this communicator, 0 .. size - 1, also in a subset. Tensors are dense and live on `device`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from lt_core.base.traffic import Traffic
from lt_core.base.work import Work

Ends = Sequence[tuple[Tensor, int]]


@runtime_checkable
class Comm(Protocol):
    """A rank's view of a group of ranks. Every verb has a deadline and raises `Deadline`, `Aborted` or `UserError`.

    The collectives write into the tensor they are given first and return nothing; `out` and `x` have one dtype.
    """

    rank: int
    size: int
    device: torch.device
    traffic: Traffic
    backend: str
    timeout_s: float

    @property
    def ended(self) -> str:
        """Why it was aborted; empty while it lives."""
        ...

    def exchange(self, sends: Ends, receives: Ends) -> None:
        """Send each (tensor, peer) and fill each (buffer, peer): one batch, over when all of it is."""
        ...

    def barrier(self) -> None:
        """Hold until every rank is here."""
        ...

    def subset(self, ranks: Sequence[int]) -> Comm:
        """A communicator of some ranks, in the order given. Every rank of this one calls it, in one order; a rank that
        is not a member gets one whose verbs raise."""
        ...

    def all_reduce(self, x: Tensor, mean: bool = False) -> None:
        """The backend's own: `x` becomes the sum over ranks; the mean, divided once after the sum, if `mean`.

        All ranks give the same `mean`. Errors: the mean of integers. Where a sum is inf in float16, so is the mean.
        """
        ...

    def reduce_scatter(self, out: Tensor, x: Tensor) -> None:
        """The backend's own: `out` (n elements) becomes chunk `rank` of the sum of `x` (size * n elements)."""
        ...

    def all_gather(self, out: Tensor, x: Tensor) -> None:
        """The backend's own: `out` (size * n elements) becomes every rank's `x` (n elements), by rank."""
        ...

    def broadcast(self, x: Tensor, root: int) -> None:
        """The backend's own: `x` becomes rank `root`'s."""
        ...

    def all_to_all(
        self, out: Tensor, x: Tensor, out_counts: Sequence[int] | None = None, counts: Sequence[int] | None = None
    ) -> None:
        """The backend's own: part r of `x` goes to rank r; equal parts, or `counts` rows of dim 0 each."""
        ...

    def start(self, verb: str, *args: object) -> Work:
        """The verb of that name, begun: `start("all_reduce", x)`. Its buffers belong to the Work until `wait()`.

        args: what the verb takes, in its order and without names: `start("all_reduce", x, True)` begins a mean.
        """
        ...

    def abort(self, reason: str) -> None:
        """End this communicator: each verb begun or waiting raises `Aborted(reason)` at once, here and on its peers."""
        ...
