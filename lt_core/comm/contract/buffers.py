"""What started work owns until it is waited for: outputs, which nobody may read, and inputs, which nobody may change.

The work runs on private copies. Meanwhile the user's outputs hold poison (NaN, the greatest integer), so that a result
that is read before `wait()` is seen to be wrong; at `wait()` both are checked and the results copied in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lt_core.comm import checks


class Roles(NamedTuple):
    """The tensors of a call: those it writes and those it only reads."""

    outs: list[Tensor]
    ins: list[Tensor]


def roles(verb: str, args: Sequence[Any], rank: int) -> Roles:
    """Which tensors a call writes and which it reads."""
    if verb == "exchange":
        return Roles([x for x, _ in args[1]], [x for x, _ in args[0]])
    if verb == "broadcast":
        return Roles([], [args[0]]) if args[1] == rank else Roles([args[0]], [])
    if verb == "all_reduce":
        return Roles([args[0]], [])
    return Roles([args[0]], [args[1]]) if args else Roles([], [])


class Owned:
    """The buffers of one started call. `args`: the call's own, with private copies in place of the tensors."""

    def __init__(self, verb: str, args: Sequence[Any], tensors: Roles) -> None:
        self.tensors = tensors
        with torch.no_grad():
            self._copies = {id(x): x.clone() for x in (*tensors.outs, *tensors.ins)}
        with torch.inference_mode():  # so that tensors of either kind can be written
            for x in tensors.outs:
                x.fill_(_poison(x))
        self.args = [self._private(verb, a) for a in args]

    def _private(self, verb: str, arg: Any) -> Any:
        if isinstance(arg, Tensor):
            return self._copies[id(arg)]
        return [(self._copies[id(x)], peer) for x, peer in arg] if verb == "exchange" else arg

    def touched(self, others: Roles) -> bool:
        """Whether another call would read or write an output of ours, or write an input."""
        ours = self.tensors
        writes = any(checks.overlap(a, b) for a in ours.outs for b in (*others.outs, *others.ins))
        return writes or any(checks.overlap(a, b) for a in ours.ins for b in others.outs)

    def changed(self) -> str:
        """What somebody did to the buffers meanwhile, or nothing."""
        outs, ins = self.tensors
        if any(not _same(x, torch.full_like(x, _poison(x))) for x in outs):
            return "its output was written"
        apart = (x for x in ins if not any(checks.overlap(x, out) for out in outs))  # a gather in place has none
        return "its input was changed" if any(not _same(x, self._copies[id(x)]) for x in apart) else ""

    def deliver(self) -> None:
        """Copy the results into the user's outputs."""
        with torch.inference_mode():
            for x in self.tensors.outs:
                x.copy_(self._copies[id(x)])


def _poison(x: Tensor) -> float | int | bool:
    if x.dtype.is_floating_point:
        return float("nan")
    return True if x.dtype == torch.bool else torch.iinfo(x.dtype).max


def _same(a: Tensor, b: Tensor) -> bool:
    """Equal to the bit, so that NaN equals itself."""
    return torch.equal(a.detach().view(-1).view(torch.uint8), b.detach().view(-1).view(torch.uint8))
