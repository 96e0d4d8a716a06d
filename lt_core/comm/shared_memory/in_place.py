"""Collectives of tensors that lie where every rank can reach them: read from the owner, write to all.

    all_reduce    rank 0 sums the first half of both, and writes it to both     x0 [ 0 | 1 ]     x1 [ 0 | 1 ]
                  rank 1 sums the second half, and writes it to both               ^ ^-----------------^   rank 1
                                                                                   '-------------------    rank 0

`views`: what every rank brought, by rank; all have met since they brought it. A rank leaves once nobody reads or writes
what is its own any more.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from lt_core.base.units import bounds
from lt_core.comm import streamed
from lt_core.comm.shared_memory.phases import Phases
from lt_core.comm.sums import add, blocks, divider


def all_reduce(phases: Phases, views: Sequence[Tensor], mean: bool) -> None:
    """Every view becomes the sum: we see to our chunk of all of them, which no other rank touches meanwhile."""
    low, high = bounds(views[0].numel(), phases.rank, phases.size)
    divide = divider(phases.size, views[0]) if mean else None
    for total, *others in blocks([view[low:high] for view in views]):
        for other in others:
            total += other
        if divide:
            divide(total)
        for other in others:
            other.copy_(total)
    phases.meet()


def reduce_scatter(phases: Phases, out: Tensor, views: Sequence[Tensor]) -> None:
    """`out` becomes our chunk of the sum; it may be that chunk of our own view."""
    low, high = phases.rank * out.numel(), (phases.rank + 1) * out.numel()
    spare = phases.stages(out.dtype)[phases.rank]
    for part, *chunks in blocks([out, *(view[low:high] for view in views)]):
        total = spare[: part.numel()]
        add(total, chunks)
        part.copy_(total)
    phases.meet()


def all_gather(phases: Phases, out: Tensor, views: Sequence[Tensor]) -> None:
    """`out` becomes all views, one after the other; our own may be its part of it."""
    copy = streamed.copier(out.nbytes)
    for row, view in zip(out.view(phases.size, -1), views, strict=True):
        if row.data_ptr() != view.data_ptr():
            copy(row, view)
    phases.meet()


def broadcast(phases: Phases, x: Tensor, view: Tensor, root: int) -> None:
    """`x` becomes the root's view."""
    if phases.rank != root:
        streamed.copier(x.nbytes)(x, view)
    phases.meet()


def all_to_all(
    phases: Phases, parts: Sequence[Tensor], views: Sequence[Tensor], counts: Sequence[Sequence[int]]
) -> None:
    """`parts[r]` of our output becomes what rank r has for us; `counts[r][q]`: how many bytes it has for rank q."""
    for part, view, row in zip(parts, views, counts, strict=True):
        first = sum(row[: phases.rank])
        part.copy_(view[first : first + part.numel()])
    phases.meet()
