"""A round of one rank as tensors: what it sends, where what comes lands, and what then becomes of that.

SEND   place ---> peer
ADD    piece <--- peer, then place += piece       rounds share the memory of their pieces
COPY   place <--- peer                            no detour, unless its round has another use for the place
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from torch import Tensor

from lt_core.base.action import Action, Op
from lt_core.collectives.buffers import Scratch

Settle = Callable[[Tensor, Tensor], Tensor]  # Tensor.add_ or Tensor.copy_


class Exchange(NamedTuple):
    """(tensor, peer) of what is sent and received at once; then `settle(place, came)` for each in `after`."""

    sends: list[tuple[Tensor, int]]
    receives: list[tuple[Tensor, int]]
    after: list[tuple[Settle, Tensor, Tensor]]


def exchange(actions: Sequence[Action], part: Callable[[Action], Tensor], scratch: Scratch) -> Exchange:
    """The exchange that these actions are. part: the elements of an action's units; without elements no message."""
    made = Exchange([], [], [])
    for a in actions:
        place = part(a)
        if place.numel() and a.op is Op.SEND:
            made.sends.append((place, a.peer))
        elif place.numel():
            straight = a.op is Op.COPY and not any(_overlap(a, b) for b in actions if b is not a)
            came = place if straight else scratch.piece(place)
            made.receives.append((came, a.peer))
            if not straight:
                made.after.append((Tensor.add_ if a.op is Op.ADD else Tensor.copy_, place, came))
    return made


def _overlap(a: Action, b: Action) -> bool:
    return a.unit < b.unit + b.count and b.unit < a.unit + a.count
