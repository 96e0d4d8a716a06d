"""Ranks with fewer batches stay until the last one is through: who has left would be waited for in vain.

    rank 0   b0 b1 b2  -  -          before each batch one number is summed: how many ranks still have one; at zero all
    rank 1   b0 b1 b2 b3 b4          end together. A rank that has run out takes part in `sync` with nothing to add.

    for batch in together(comm, batches):
        optimizer.zero_grad()
        if batch is not None:
            loss_sum(model, batch).backward()
        replica.sync(samples=0 if batch is None else len(batch))    # or its tokens, if the loss adds up tokens
        optimizer.step()

The divisor is then the samples that all ranks had in this step; with a plain `sync()` it stays the number of ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

import torch

from lt_core.comm.comm import Comm

Batch = TypeVar("Batch")


def together(comm: Comm, batches: Iterable[Batch], spare: Batch | None = None) -> Iterator[Batch | None]:
    """This rank's batches, and `spare` for as long as others still have some; every rank calls it.

    spare: None, or a batch of no samples for a model whose forward itself talks to other ranks.
    """
    mine = iter(batches)
    while True:
        batch = next(mine, _OVER)
        having = torch.tensor([batch is not _OVER], dtype=torch.int64, device=comm.device)
        comm.all_reduce(having)
        if not having:
            return
        yield spare if batch is _OVER else batch  # type: ignore[misc]  # mypy does not see that it is no _OVER here


_OVER = object()
