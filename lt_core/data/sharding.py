"""Each sample goes to one rank and to no other: no rank is filled up with samples that another has too.

    5 samples, 4 ranks    0: 0 4    1: 1    2: 2    3: 3        filled up to 8 they would count three of them twice, and
                                                                 an accuracy would change with the number of ranks
Metrics are sums over ranks (right ones, seen ones), divided at the very end: a mean of means weighs ranks, not samples.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from lt_core.base.errors import UserError
from lt_core.comm.comm import Comm


class Shard:
    """This rank's part of `samples` indices, a sampler for a DataLoader: `DataLoader(data, sampler=Shard(n, comm))`.

    shuffle: whether each epoch has its own order, the same on all ranks. Shares differ by one sample at most, and a
    rank's may be empty. Errors: fewer than no samples.
    """

    def __init__(self, samples: int, comm: Comm, shuffle: bool = False, seed: int = 0) -> None:
        if samples < 0:
            raise UserError("there cannot be so many samples", samples, "0 or more")
        self.samples, self.rank, self.size = samples, comm.rank, comm.size
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0

    def __iter__(self) -> Iterator[int]:
        order = torch.arange(self.samples)
        if self.shuffle:
            order = torch.randperm(self.samples, generator=torch.Generator().manual_seed(self.seed + self.epoch))
        return iter(order[self.rank :: self.size].tolist())

    def __len__(self) -> int:
        return len(range(self.rank, self.samples, self.size))

    def set_epoch(self, epoch: int) -> None:
        """Another order for another epoch; every rank says the same."""
        self.epoch = epoch


def sums(comm: Comm, **values: float) -> dict[str, float]:
    """Each value summed over ranks, in one message: `sums(comm, right=3, seen=4)`. Every rank calls it alike.

    A rank without samples brings zeros. Divide the results, not the parts.
    """
    told = torch.tensor(list(values.values()), dtype=torch.float64, device=comm.device)
    comm.all_reduce(told)
    return dict(zip(values, told.tolist()))
