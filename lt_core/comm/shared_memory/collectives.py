"""Which way a collective goes: in place, where all ranks' tensors lie in slots; else over the stages.

Every rank comes to the same answer, from sizes that all know and from what all say when they meet.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lt_core.base.errors import Mismatch
from lt_core.comm.checks import overlap
from lt_core.comm.shared_memory import copied, in_place
from lt_core.comm.shared_memory.growth import Growth
from lt_core.comm.shared_memory.phases import Phases
from lt_core.comm.shared_memory.slots import NOWHERE, Slots

SMALL_BYTES = 64 << 10  # up to here a second meeting costs more than adding up everything on every rank


class Collectives:
    """The collectives of one rank, run one after the other."""

    def __init__(self, phases: Phases, slots: Slots, growth: Growth) -> None:
        self._phases, self._slots, self._growth = phases, slots, growth

    def barrier(self) -> None:
        """Hold until every rank is here."""
        self._phases.meet()

    def all_reduce(self, x: Tensor, mean: bool = False) -> None:
        """`x` becomes the sum over ranks, or their mean."""
        flat = x.detach().view(-1)
        if flat.nbytes <= SMALL_BYTES:
            copied.small_all_reduce(self._phases, flat, mean)
        elif views := self._views(flat):
            in_place.all_reduce(self._phases, views, mean)
        else:
            self._growth.fit(flat.nbytes)
            copied.all_reduce(self._phases, flat, mean)

    def reduce_scatter(self, out: Tensor, x: Tensor) -> None:
        """`out` becomes chunk `rank` of the sum of `x`."""
        flat, total = x.detach().view(-1), out.detach().view(-1)
        apart = _apart(total, flat[self._phases.rank * total.numel() :], flat)
        if views := self._views(flat, apart):
            in_place.reduce_scatter(self._phases, total, views)
        else:
            self._growth.fit(flat.nbytes)
            copied.reduce_scatter(self._phases, total, flat if apart else flat.clone())

    def all_gather(self, out: Tensor, x: Tensor) -> None:
        """`out` becomes every rank's `x`, by rank."""
        flat, whole = x.detach().view(-1), out.detach().view(-1)
        apart = _apart(flat, whole[self._phases.rank * flat.numel() :], whole)
        if views := self._views(flat, apart):
            in_place.all_gather(self._phases, whole, views)
        else:
            self._growth.fit(flat.nbytes)
            copied.all_gather(self._phases, whole, flat if apart else flat.clone())

    def broadcast(self, x: Tensor, root: int) -> None:
        """`x` becomes rank `root`'s."""
        flat = x.detach().view(-1)
        if views := self._views(flat):
            in_place.broadcast(self._phases, flat, views[root], root)
        else:
            self._growth.fit(flat.nbytes)
            copied.broadcast(self._phases, flat, root)

    def all_to_all(self, out: Tensor, x: Tensor, come: Sequence[int], go: Sequence[int]) -> None:
        """Part r of `x` (`go[r]` bytes of it) goes to rank r, as its part `rank` (`come` bytes by rank)."""
        flat, whole = _bytes(x), _bytes(out)
        apart = not overlap(flat, whole)
        views = self._views(flat, apart, whole_slot=True)
        counts = self._phases.meet_with(list(go))
        for rank, row in enumerate(counts):
            if row[self._phases.rank] != come[rank]:
                what = f"all_to_all: rank {self._phases.rank} expects {come[rank]} bytes of rank {rank}"
                raise Mismatch(what, f"{row[self._phases.rank]} sent", "the same count on both")
        outs = list(torch.split(whole, list(come)))
        if views:
            in_place.all_to_all(self._phases, outs, views, counts)
        else:
            parts = torch.split(flat if apart else flat.clone(), list(go))
            copied.all_to_all(self._phases, outs, parts, max(map(max, counts)))

    def _views(self, x: Tensor, fits: bool = True, whole_slot: bool = False) -> list[Tensor]:
        """What lies where each rank's `x` does; nothing, if one of them lies in no slot, or does not fit."""
        if not self._slots:  # which all know
            return []
        self._phases.meet(self._slots.place(x) if fits else NOWHERE)
        places = self._phases.heard()
        return [] if NOWHERE in places else self._slots.views(places, x, whole_slot)


def _apart(part: Tensor, its_place: Tensor, whole: Tensor) -> bool:
    """Whether one may be read while the other is written, part by part: apart, or exactly where it belongs."""
    return not overlap(part, whole) or part.data_ptr() == its_place.data_ptr()


def _bytes(x: Tensor) -> Tensor:
    return x.detach().view(-1).view(torch.uint8)
