"""The collectives over tensors of one process, which lie in a list by rank: plain torch, sums in the order of ranks.

Whoever comes last to a meeting of threads runs the collective for all, so that every rank gets the same bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from lt_core.base.errors import Mismatch
from lt_core.comm.sums import divider

Pairs = Sequence[tuple[Tensor, Tensor]]  # (out, x) of each rank
Parts = Sequence[tuple[Tensor, Tensor, list[int], list[int]]]  # (out, x, out_counts, counts) of each rank


def total(xs: Sequence[Tensor]) -> Tensor:
    """The sum, added up from rank 0 on."""
    result = xs[0].clone()
    for x in xs[1:]:
        result += x
    return result


def all_reduce(xs: Sequence[Tensor], mean: bool) -> None:
    """Every tensor becomes the sum, or the mean."""
    result = total(xs)
    if mean:
        divider(len(xs), result)(result)
    for x in xs:
        x.copy_(result)


def reduce_scatter(pairs: Pairs) -> None:
    """Every out becomes its part of the sum."""
    result = total([x.reshape(-1) for _, x in pairs])
    for (out, _), part in zip(pairs, result.view(len(pairs), pairs[0][0].numel())):
        out.copy_(part.view_as(out))


def all_gather(pairs: Pairs) -> None:
    """Every out becomes all inputs one after the other."""
    result = torch.cat([x.reshape(-1) for _, x in pairs])
    for out, _ in pairs:
        out.copy_(result.view_as(out))


def broadcast(xs: Sequence[Tensor], root: int) -> None:
    """Every tensor becomes the root's."""
    for x in xs:
        if x is not xs[root]:
            x.copy_(xs[root])


def all_to_all(parts: Parts) -> None:
    """Part r of every input goes to out r, in the order of the senders."""
    cuts = [[0, *accumulate(counts)] for *_, counts in parts]
    for to, (_, _, expected, _) in enumerate(parts):
        for source, (*_, counts) in enumerate(parts):
            if counts[to] != expected[source]:
                what = f"all_to_all: rank {to} expects {expected[source]} rows of rank {source}"
                raise Mismatch(what, f"{counts[to]} sent", "the same count on both")
    gathered = [torch.cat([x[c[to] : c[to + 1]] for (_, x, *_), c in zip(parts, cuts)]) for to in range(len(parts))]
    for (out, *_), rows in zip(parts, gathered):
        out.copy_(rows)
