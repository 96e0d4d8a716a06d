"""Ranks on a grid of up to four axes, and a communicator for each row of it.

    mesh(comm, dp=2, pp=2, tp=2)     rank  0 1 2 3 4 5 6 7
                                     pp    0 0 0 0 1 1 1 1      slowest: neighbours far apart talk least
                                     dp    0 0 1 1 0 0 1 1
                                     tp    0 1 0 1 0 1 0 1      fastest: next to each other, on one node

Source: Narayanan and others 2021 (the order of Megatron-LM).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from lt_core.base.errors import UserError
from lt_core.comm.comm import Comm

AXES = ("pp", "dp", "ep", "tp")  # slowest first


@dataclass(frozen=True)
class Mesh:
    """A rank's place: for each axis the communicator of the ranks that differ from it on this axis alone.

    Its coordinate on an axis is the rank there: `mesh.dp.rank`; the axis' length is `mesh.dp.size`.
    """

    whole: Comm
    pp: Comm
    dp: Comm
    ep: Comm
    tp: Comm

    @property
    def lengths(self) -> tuple[int, ...]:
        """Ranks along pp, dp, ep, tp."""
        return tuple(axis.size for axis in (self.pp, self.dp, self.ep, self.tp))

    def rank_at(self, **at: int) -> int:
        """The whole's rank at other coordinates: `mesh.rank_at(pp=0)` is our column's first stage."""
        place = {axis: getattr(self, axis).rank for axis in AXES}
        if unknown := sorted(at.keys() - place.keys()):
            raise UserError(f"a mesh has no axis {unknown[0]!r}", expected=", ".join(AXES))
        place.update(at)
        rank = 0
        for axis, length in zip(AXES, self.lengths):
            if not 0 <= place[axis] < length:
                raise UserError(f"{axis} has no coordinate {place[axis]}", place[axis], f"0 to {length - 1}")
            rank = rank * length + place[axis]
        return rank


def mesh(comm: Comm, dp: int = 1, pp: int = 1, tp: int = 1, ep: int = 1) -> Mesh:
    """The ranks of `comm` as a grid of data, pipeline, tensor and expert parallel ranks; every rank calls it."""
    lengths = (pp, dp, ep, tp)
    product = pp * dp * ep * tp
    if min(lengths) < 1 or product != comm.size:
        shown = " * ".join(f"{axis}={length}" for axis, length in zip(AXES, lengths))
        raise UserError("the mesh does not hold all ranks", f"{shown} = {product}", f"a product of {comm.size}")
    return Mesh(comm, *(_rows(comm, lengths, (axis,)) for axis in AXES))


def across(whole: Mesh, *axes: str) -> Comm:
    """A communicator over several axes, such as `across(mesh, "dp", "ep")`; every rank of the mesh calls it."""
    if not axes or len(set(axes)) < len(axes) or not set(axes) <= set(AXES):
        raise UserError("these are no axes of a mesh", axes, f"some of {', '.join(AXES)}, each once")
    return _rows(whole.whole, whole.lengths, axes)


def _rows(comm: Comm, lengths: tuple[int, ...], axes: tuple[str, ...]) -> Comm:
    """Our row along some axes. All ranks make all rows in one order."""
    along = [k for k, axis in enumerate(AXES) if axis in axes]
    apart = [k for k in range(len(AXES)) if k not in along]
    grid = torch.arange(comm.size).reshape(lengths).permute(*apart, *along).reshape(-1, _product(lengths, along))
    rows = [comm.subset(row) for row in grid.tolist()]
    return next(row for row in rows if row.rank >= 0)


def _product(lengths: tuple[int, ...], axes: list[int]) -> int:
    product = 1
    for k in axes:
        product *= lengths[k]
    return product
