"""Collectives of tensors that lie anywhere: each rank copies a part onto its stage, all meet, each takes what it needs.

    x  [ part 0 | part 1 | ... ]      as much at a time as a stage holds; while one stage is still read the next part
                                      goes onto the other, so that a part costs one meeting

Tensors are flat; those of an all-to-all are bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lt_core.base.units import bounds
from lt_core.comm.shared_memory.phases import Phases
from lt_core.comm.shared_memory.sums import add, blocks


def small_all_reduce(phases: Phases, x: Tensor) -> None:
    """`x` becomes the sum, which every rank adds up itself: one meeting, for what fits on a stage."""
    stages, elements = phases.stages(x.dtype), x.numel()
    stages[phases.rank][:elements].copy_(x)
    phases.meet()
    add(x, [stage[:elements] for stage in stages])


def all_reduce(phases: Phases, x: Tensor) -> None:
    """`x` becomes the sum: of each part every rank adds up its chunk and takes the other chunks from their ranks."""
    rank, size = phases.rank, phases.size
    for part in torch.split(x, _elements(phases, x)):
        stages = [stage[: part.numel()] for stage in phases.stages(x.dtype)]
        cuts = [slice(*bounds(part.numel(), r, size)) for r in range(size)]
        mine, own = stages[rank], cuts[rank]
        mine[: own.start].copy_(part[: own.start])
        mine[own.stop :].copy_(part[own.stop :])
        phases.meet()
        shown = [(part if r == rank else stage)[own] for r, stage in enumerate(stages)]
        for total, target, *chunks in blocks([mine[own], part[own], *shown]):
            add(total, chunks)
            target.copy_(total)
        phases.meet()
        for r, cut in enumerate(cuts):
            if r != rank:
                part[cut].copy_(stages[r][cut])


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
    rows, width = out.view(phases.size, -1), _elements(phases, x)
    for part, columns in zip(torch.split(x, width), torch.split(rows, width, 1), strict=True):
        stages = phases.stages(x.dtype)
        stages[phases.rank][: part.numel()].copy_(part)
        phases.meet()
        for row, stage in zip(columns, stages, strict=True):
            row.copy_(stage[: part.numel()])


def broadcast(phases: Phases, x: Tensor, root: int) -> None:
    """`x` becomes the root's."""
    for part in torch.split(x, _elements(phases, x)):
        stage = phases.stages(x.dtype)[root][: part.numel()]
        if phases.rank == root:
            stage.copy_(part)
        phases.meet()
        if phases.rank != root:
            part.copy_(stage)


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
