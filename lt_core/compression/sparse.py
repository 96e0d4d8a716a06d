"""The k largest elements of a tensor, exactly k and always the same ones, as pairs of index and value on the wire.

    |x|   .1 .9 .3 .9 .0 .2        k = 3  ->  indices 1 2 3, values .9 .3 -.9
               A sample says about how large the k-th is; what is larger is sorted, and not the other ninety-nine
               hundredths. Was the sample wrong, the bound goes down until k elements are above it.

Ties go to the lower index; nan counts as largest, so that it is seen by all. Law: k (4 + w) bytes, w bytes a value.
Source: Lin and others 2018, section 3.3 (sampled threshold, hierarchical selection).
"""

from __future__ import annotations

import torch
from torch import Tensor

from lt_core.comm.comm import Comm
from lt_core.compression.gather import cut, gathered, gathered_any, joined

SAMPLE, ROUNDS = 10_000, 10
INDEX = torch.int32


def largest(x: Tensor, count: int) -> Tensor:
    """The indices (count,), ascending, of the largest |x|, x (n,)."""
    if count >= x.numel():
        return torch.arange(x.numel(), device=x.device)
    size = x.abs().nan_to_num_(nan=torch.inf, posinf=torch.inf)
    near = (size >= _bound(size, count)).nonzero().view(-1)
    values = size[near]
    least = values.topk(count).values[-1]
    chosen = values > least
    ties = (values == least).nonzero().view(-1)
    chosen[ties[: count - int(chosen.sum())]] = True
    return near[chosen]


def _bound(size: Tensor, count: int) -> float:
    """A number that at least `count` elements reach, and not many more."""
    step = size.numel() // SAMPLE
    if step < 2:
        return 0.0
    sample = size[::step]
    wanted = min(round(1.3 * count / step) + 10, sample.numel())
    bound = float(sample.topk(wanted).values[-1])
    for _ in range(ROUNDS):
        if int((size >= bound).sum()) >= count:
            return bound
        bound *= 0.7
    return 0.0


def code(x: Tensor, indices: Tensor) -> Tensor:
    """The elements of x (n,) at `indices` (k,) as bytes: k values, k indices."""
    return joined(x[indices], indices.to(INDEX))


def decoded(code: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """The (indices, values) in a code of elements like those of `like`."""
    count = code.numel() // (INDEX.itemsize + like.dtype.itemsize)
    values, indices = cut(code, (like.dtype, count), (INDEX, count))
    return indices.long(), values


def mean(comm: Comm, x: Tensor, indices: Tensor, alike: bool) -> tuple[Tensor, Tensor]:
    """(mean over ranks, what was sent of this one's), each (n,) and zero where nothing was sent.

    alike: whether every rank sends as many. An index that several ranks sent is added up, and the sum divided by *all*
    ranks: who did not send it sent zero.
    """
    mine = code(x, indices)
    total = torch.zeros_like(x)
    for theirs in gathered(comm, mine) if alike else gathered_any(comm, mine):
        total.index_add_(0, *decoded(theirs, x))
    sent = torch.zeros_like(x)
    sent[indices] = x[indices]
    return total.div_(comm.size), sent


def code_bytes(count: int, itemsize: int) -> int:
    """How many bytes `count` pairs take."""
    return count * (INDEX.itemsize + itemsize)
