"""1-bit SGD: of each element its sign, of each column two numbers, the mean of what is not negative and of what is.

    column   3  1 -2  4 -6        bits 1 1 0 1 0      means 8/3, -4      decoded  8/3  8/3  -4  8/3  -4

The sum of each sign class is kept exactly, hence that of the column. What the bits lose is large, so it needs
`ErrorFeedback`, without which training diverges. A matrix (n, m) has m columns of n; what has one dimension is one.
Law: n elements in c columns, w bytes a number: (p - 1) (2 c w + ceil(n / 8)) bytes.
Here each rank decodes all others; the paper's own ranks each sum a part, quantize that sum again, and pass it on.
Paper: Seide, Fu, Droppo, Li, Yu 2014, "1-bit stochastic gradient descent", section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from lt_core.collectives.agreement import Agreed
from lt_core.collectives.reducer import Reduced
from lt_core.comm.comm import Comm
from lt_core.compression.bucket import entries, flat, mean_of, pieces, wide
from lt_core.compression.gather import cut, gathered, joined, sent_bytes
from lt_core.compression.packing import bits, bytes_for, from_bits


class OneBit:
    """The mean of signs times means; wrap it: `ErrorFeedback(OneBit())`."""

    def __init__(self) -> None:
        self._agreed = Agreed("OneBit")

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The mean of a bucket, of the shapes and dtypes that came in. Errors: those of `Mean`."""
        self._agreed(grads, comm)
        if not grads:
            return Reduced({}, {})
        decoded = [decode(code, grads) for code in gathered(comm, encode(grads))]
        return Reduced(pieces(mean_of(decoded), grads), pieces(decoded[comm.rank], grads))

    def state_dict(self) -> dict[str, object]:
        """Nothing: each step stands alone."""
        return {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Accept what `state_dict` gives. Errors: anything else."""
        entries(state, "OneBit")


def encode(grads: Mapping[str, Tensor]) -> Tensor:
    """The bytes of a bucket: upper means, lower means, bits."""
    x = flat(grads)
    upper, lower = x.clamp(min=0), x.clamp(max=0)  # nan stays nan in both
    counts = _by_column((x >= 0).to(x.dtype), grads)
    rows = torch.cat([x.new_full((columns(g.shape),), _rows(g.shape)) for g in grads.values()])
    means = [_by_column(upper, grads) / counts.clamp(min=1), _by_column(lower, grads) / (rows - counts).clamp(min=1)]
    return joined(*means, bits((x >= 0).to(torch.uint8)))


def decode(code: Tensor, like: Mapping[str, Tensor]) -> Tensor:
    """What a bucket of these shapes became: (n,)."""
    shapes = [x.shape for x in like.values()]
    count, elements, dtype = sum(map(columns, shapes)), sum(s.numel() for s in shapes), wide(like)
    means = (dtype, count)
    upper, lower, packed = cut(code, means, means, (torch.uint8, bytes_for(elements, 8)))
    signs = from_bits(packed, elements).to(dtype)  # times 1 or 0: six times faster than a choice that no one foresees
    return _spread(upper, shapes).mul_(signs).add_(_spread(lower, shapes).mul_(1 - signs))


def columns(shape: Sequence[int]) -> int:
    """How many columns a tensor of this shape has."""
    return torch.Size(shape[1:]).numel() if len(shape) > 1 else 1


def _rows(shape: torch.Size) -> int:
    return shape[0] if len(shape) > 1 else shape.numel()


def _by_column(x: Tensor, grads: Mapping[str, Tensor]) -> Tensor:
    """Sums over each column of all tensors: (c,)."""
    cut_in = x.split_with_sizes([g.numel() for g in grads.values()])
    return torch.cat([part.view(_rows(g.shape), columns(g.shape)).sum(0) for part, g in zip(cut_in, grads.values())])


def _spread(x: Tensor, shapes: Sequence[torch.Size]) -> Tensor:
    """A number a column to all elements of it: (c,) to (n,)."""
    parts = x.split_with_sizes([columns(s) for s in shapes])
    return torch.cat([part.expand(_rows(s), columns(s)).reshape(-1) for part, s in zip(parts, shapes)])


def law_bytes(size: int, shapes: Sequence[Sequence[int]], itemsize: int) -> int:
    """How many bytes a rank sends for tensors of these shapes; itemsize: of the widest, at least 4."""
    elements = sum(torch.Size(s).numel() for s in shapes)
    return sent_bytes(size, 2 * itemsize * sum(map(columns, shapes)) + bytes_for(elements, 8))
