"""What the low-rank reducers share: which tensors are matrices worth two thin factors, and how factors are kept.

    M (n, m)  ~  left^T right      left (r, n), right (r, m): kept by rows, for a thin factor times a matrix reads the
                                   matrix two to three times faster from that side

A tensor is a matrix of its first dimension times all others; with one dimension, or where the factors save too little,
it travels as it is, in the first message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from zlib import crc32

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.collectives.reducer import Mean
from lt_core.comm.comm import Comm

LEAST_SAVING = 2.0  # how many times shorter the factors must be


def checked(rank: int) -> int:
    """The rank of an approximation. Errors: fewer than one column, or no whole number of them."""
    if not hasattr(rank, "__index__") or rank < 1:
        expected = "a whole number, at least 1"
        raise UserError("a matrix of low rank has columns", f"rank {rank}", expected, "2 where unsure")
    return rank


def sides(shape: Sequence[int]) -> tuple[int, int]:
    """(n, m) of a tensor as a matrix."""
    return shape[0], torch.Size(shape[1:]).numel()


def thin(shape: Sequence[int], rank: int, least_saving: float) -> bool:
    """Whether two factors of this rank are so much shorter; never where the rank reaches the smaller side."""
    if len(shape) < 2:
        return False
    n, m = sides(shape)
    return rank < min(n, m) and least_saving * rank * (n + m) < n * m


def matrix(x: Tensor, dtype: torch.dtype) -> Tensor:
    """A gradient as (n, m)."""
    return x.detach().reshape(x.shape[0], -1).to(dtype)


def matrices(grads: Mapping[str, Tensor], rank: int, least_saving: float, dtype: torch.dtype) -> dict[str, Tensor]:
    """Those gradients that are worth two thin factors, each as (n, m)."""
    return {name: matrix(x, dtype) for name, x in grads.items() if thin(x.shape, rank, least_saving)}


def first(name: str, rank: int, side: int, like: Tensor, seed: int) -> Tensor:
    """A factor to begin with, (rank, side): the same on every rank, whatever the order of the buckets."""
    generator = torch.Generator().manual_seed(seed * 2**32 + crc32(name.encode()))
    drawn = torch.randn(rank, side, generator=generator, dtype=torch.float64)
    return orthonormal(drawn).to(like)


def orthonormal(factor: Tensor) -> Tensor:
    """Rows (r, n) that are orthonormal and span those of `factor`; also where these are zero, tiny, or dependent."""
    rows: Tensor = torch.linalg.qr(factor.t()).Q.t().contiguous()
    return rows


class Message:
    """Tensors side by side in one flat buffer, each of them a view to be written to; then their mean over ranks."""

    def __init__(self, shapes: Mapping[str, Sequence[int]], like: Tensor) -> None:
        sizes = [torch.Size(shape).numel() for shape in shapes.values()]
        self._flat = torch.empty(sum(sizes), dtype=like.dtype, device=like.device)
        cut = self._flat.split_with_sizes(sizes) if sizes else ()
        self.parts = {name: x.view(torch.Size(shape)) for x, (name, shape) in zip(cut, shapes.items())}

    def mean(self, by: Mean, comm: Comm) -> dict[str, Tensor]:
        """The parts, each of them now its mean."""
        by.average(self._flat, comm)
        return self.parts


class Products:
    """left^T right by name, in memory that is used again: new memory costs more than the product."""

    def __init__(self) -> None:
        self._memory: dict[str, Tensor] = {}

    def __call__(self, name: str, left: Tensor, right: Tensor, like: Tensor) -> Tensor:
        """Of the shape and dtype of `like`; what was given for this name before is written over."""
        shape = (left.shape[1], right.shape[1])
        kept = self._memory.get(name)
        if kept is None or (kept.shape, kept.dtype, kept.device) != (shape, left.dtype, left.device):
            with torch.inference_mode(False):
                kept = self._memory[name] = left.new_empty(shape)
        return torch.mm(left.t(), right, out=kept).view(like.shape).to(like.dtype)
