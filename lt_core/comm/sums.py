"""Sums in the order of ranks, whatever the verb and however the tensor is cut: each element is ((x0 + x1) + x2) + ...

So all_reduce gives the bits of reduce_scatter and all_gather, and those of plain additions in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor

BLOCK_BYTES = 128 << 10  # what a core's own cache holds of all ranks at once


def add(out: Tensor, parts: Sequence[Tensor]) -> None:
    """`out` becomes the sum of the parts, by rank. It may be one of the first two, and no other."""
    if len(parts) == 1:
        out.copy_(parts[0])
        return
    torch.add(parts[0], parts[1], out=out)
    for part in parts[2:]:
        out += part


def divider(ranks: int, like: Tensor) -> Callable[[Tensor], Tensor]:
    """What makes a sum over `ranks` their mean, in place, of tensors of one kind.

    Multiplying by the inverse of a power of two is as exact as dividing, and far cheaper; cheapest by a tensor, which
    may be on the host wherever they are.
    """
    if ranks & (ranks - 1):
        return lambda total: total.div_(ranks)
    share = torch.tensor(1 / ranks, dtype=like.dtype)
    return lambda total: total.mul_(share)


def blocks(tensors: Sequence[Tensor]) -> Iterator[tuple[Tensor, ...]]:
    """Tensors of one length, block by block, so that what is read twice is still in the cache."""
    elements = max(1, BLOCK_BYTES // tensors[0].element_size())
    return zip(*(torch.split(x, elements) for x in tensors), strict=True)
