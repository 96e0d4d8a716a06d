"""Collectives of tensors that lie anywhere: each rank copies a part onto its stage, all meet, each takes what it needs.

    x  [ part 0 | part 1 | ... ]      as much at a time as a stage holds; while one stage is still read the next part
                                      goes onto the other, so that a part costs one meeting

Tensors are flat; those of an all-to-all are bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lt_core.base.units import bounds
from lt_core.comm import streamed
from lt_core.comm.shared_memory.phases import Phases
from lt_core.comm.sums import add, blocks, divider


def small_all_reduce(phases: Phases, x: Tensor, mean: bool) -> None:
    """`x` becomes the sum, which every rank adds up itself: one meeting, for what fits on a stage."""
    stages, elements = phases.stages(x.dtype), x.numel()
    stages[phases.rank][:elements].copy_(x)
    phases.meet()
    add(x, [stage[:elements] for stage in stages])
    if mean:
        divider(phases.size, x)(x)


class Part(NamedTuple):
    """A part of a tensor, the stages it is shown on, how it is cut in chunks, one for each rank, and copied."""

    x: Tensor
    stages: list[Tensor]
    cuts: list[slice]
    copy: streamed.Copier


def all_reduce(phases: Phases, x: Tensor, mean: bool) -> None:
    """`x` becomes the sum: of each part every rank adds up its chunk and takes the other chunks from their ranks.

    One meeting a part:   show 0 | add up 0, show 1 | add up 1, take 0, show 2 | add up 2, take 1, show 3 | ...
    """
    count, copy = -(-x.numel() // _elements(phases, x)), streamed.copier(x.nbytes)
    first, *rest = torch.split(x, -(-x.numel() // count))
    cuts = [slice(*bounds(first.numel(), rank, phases.size)) for rank in range(phases.size)]
    shown, summed = _show(phases, first, cuts, copy), None
    for part in [*rest, None]:
        phases.meet()
        _add_up(phases, shown, mean)
        if summed:
            _take(phases, summed)
        summed = shown
        if part is not None:
            shown = _show(phases, part, cuts, copy)
    phases.meet()
    _take(phases, shown)


def _show(phases: Phases, x: Tensor, cuts: list[slice], copy: streamed.Copier) -> Part:
    """Copy the chunks that others add up onto our stage; our own stays free, for its sum.

    All parts are cut alike: while these are written, others take the sums of the part before last there.
    """
    stages = [stage[: x.numel()] for stage in phases.stages(x.dtype)]
    own = cuts[phases.rank]
    copy(stages[phases.rank][: own.start], x[: own.start])
    copy(stages[phases.rank][own.stop :], x[own.stop :])
    return Part(x, stages, cuts, copy)


def _add_up(phases: Phases, part: Part, mean: bool) -> None:
    """Sum our chunk, for us and for the others."""
    own, mine = part.cuts[phases.rank], part.stages[phases.rank]
    divide = divider(phases.size, part.x) if mean else None
    shown = [(part.x if stage is mine else stage)[own] for stage in part.stages]
    for total, target, *chunks in blocks([mine[own], part.x[own], *shown]):
        add(total, chunks)
        if divide:
            divide(total)
        target.copy_(total)


def _take(phases: Phases, part: Part) -> None:
    """Copy the other sums from their ranks' stages."""
    for rank, cut in enumerate(part.cuts):
        if rank != phases.rank:
            part.copy(part.x[cut], part.stages[rank][cut])


def reduce_scatter(phases: Phases, out: Tensor, x: Tensor) -> None:
    """`out` becomes our chunk of the sum; a part has as many elements of each chunk."""
    rows, width = x.view(phases.size, -1), max(1, _elements(phases, x) // phases.size)
    for part, columns in zip(torch.split(out, width), torch.split(rows, width, 1), strict=True):
        shown = [stage[: columns.numel()].view_as(columns) for stage in phases.stages(x.dtype)]
        shown[phases.rank].copy_(columns)
        phases.meet()
        add(part, [stage[phases.rank] for stage in shown])


def all_gather(phases: Phases, out: Tensor, x: Tensor) -> None:
    """`out` becomes every rank's `x`, by rank."""
    rows, width, copy = out.view(phases.size, -1), _elements(phases, x), streamed.copier(out.nbytes)
    for part, columns in zip(torch.split(x, width), torch.split(rows, width, 1), strict=True):
        stages = phases.stages(x.dtype)
        copy(stages[phases.rank][: part.numel()], part)
        phases.meet()
        for row, stage in zip(columns, stages, strict=True):
            copy(row, stage[: part.numel()])


def broadcast(phases: Phases, x: Tensor, root: int) -> None:
    """`x` becomes the root's."""
    copy = streamed.copier(x.nbytes)
    for part in torch.split(x, _elements(phases, x)):
        stage = phases.stages(x.dtype)[root][: part.numel()]
        if phases.rank == root:
            copy(stage, part)
        phases.meet()
        if phases.rank != root:
            copy(part, stage)


def all_to_all(phases: Phases, outs: Sequence[Tensor], parts: Sequence[Tensor], longest: int) -> None:
    """`outs[r]` becomes what rank r has for us, `parts[r]` goes to it; `longest`: the most bytes of any part."""
    width = phases.room.stage_bytes // phases.size
    for low in range(0, longest, width):
        lanes = [stage[: width * phases.size].view(phases.size, width) for stage in phases.stages(outs[0].dtype)]
        for lane, part in zip(lanes[phases.rank], parts, strict=True):
            piece = part[low : low + width]
            lane[: piece.numel()].copy_(piece)
        phases.meet()
        for stage, out in zip(lanes, outs, strict=True):
            piece = out[low : low + width]
            piece.copy_(stage[phases.rank][: piece.numel()])


def _elements(phases: Phases, x: Tensor) -> int:
    """How many elements a stage holds."""
    return phases.room.stage_bytes // x.element_size()
