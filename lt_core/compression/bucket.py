"""A bucket as one flat tensor, and what a reducer keeps by name between steps.

    a (2, 3)  b (3,)  c ()   --flat-->   a a a a a a b b b c   --pieces-->   a (2, 3)  b (3,)  c ()

Codes work in the widest dtype of the bucket, at least in 32 bits: a residual in 16 would forget what it is there for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.collectives.reducer import Reducer, chosen, memories


def flat(grads: Mapping[str, Tensor]) -> Tensor:
    """All elements of a bucket in their order: (n,), of at least 32 bits each."""
    if not grads:
        return torch.zeros(0)
    return torch.cat([x.detach().reshape(-1).to(wide(grads)) for x in grads.values()])


def wide(grads: Mapping[str, Tensor]) -> torch.dtype:
    """The dtype that holds every element of a bucket, and sums of them."""
    return reduce(torch.promote_types, (x.dtype for x in grads.values()), torch.float32)


def names_of(grads: object) -> set[str]:
    """The names of a bucket; none of what is no bucket, which is then refused."""
    return set(grads) if isinstance(grads, Mapping) else set()


def pieces(flat: Tensor, grads: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The flat tensor cut and shaped as the bucket, each piece of the dtype it has there."""
    cut = flat.split_with_sizes([x.numel() for x in grads.values()]) if grads else ()
    return {name: piece.view(x.shape).to(x.dtype) for (name, x), piece in zip(grads.items(), cut)}


def mean_of(parts: Sequence[Tensor]) -> Tensor:
    """The mean of what ranks sent, added in the order of ranks, so that everyone gets the same bits."""
    total = parts[0].clone()
    for x in parts[1:]:
        total += x
    return total.div_(len(parts))


def finite(x: Tensor) -> bool:
    """Whether no element is inf or nan: one fast sum, looked at closely only where that is not finite itself."""
    return bool(torch.isfinite(x.sum())) or bool(torch.isfinite(x).all())


class Memory:
    """A tensor a name, which holds its shape from step to step; zeros at first."""

    def __init__(self, what: str) -> None:
        self._what = what
        self.held: dict[str, Tensor] = {}

    def of(self, name: str, x: Tensor) -> Tensor:
        """What is remembered for `name`, as wide as x and at least 32 bits. Errors: another shape than before."""
        dtype = torch.promote_types(x.dtype, torch.float32)
        if name not in self.held:
            self.held[name] = torch.zeros(x.shape, dtype=dtype, device=x.device)
        here = self.held[name]
        if here.shape != x.shape:
            change = f"{tuple(x.shape)} after {tuple(here.shape)}"
            raise UserError(
                f"{name} changed its shape, and its {self._what} cannot", change, "one shape", "a new reducer"
            )
        return here.to(x.device, dtype)

    def state(self) -> dict[str, Tensor]:
        """A copy of all of it."""
        return {name: x.clone() for name, x in self.held.items()}

    def load(self, state: object) -> None:
        """Go on from a copy. Errors: anything else."""
        self.held = {name: x.clone() for name, x in tensors(self._what, state).items()}


def tensors(what: str, state: object) -> dict[str, Tensor]:
    """The state, if it is tensors by name. Errors: if not."""
    if not isinstance(state, Mapping) or not all(isinstance(x, Tensor) for x in state.values()):
        raise UserError(f"this is no {what}", type(state).__name__, "tensors by name, from state_dict()")
    return dict(state)


def settled(
    mean: Mapping[str, Tensor], sent: Mapping[str, Tensor], grads: Mapping[str, Tensor], rate: float = 1.0
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The mean of a reducer inside, over the rate, in the dtypes of `grads`; and what of each tensor came there.

    What rounding to 16 bits took from the mean has come nowhere. Every rank takes it from what it sent: so it waits on
    all of them, and their mean is right again.
    """
    given = {name: (x if rate == 1 else x / rate).to(grads[name].dtype) for name, x in mean.items()}
    cut = {name for name, x in mean.items() if x.dtype != given[name].dtype}
    lost = {name: mean[name] - rate * given[name].to(mean[name].dtype) for name in cut}
    return given, {name: x - lost[name] if name in cut else x for name, x in sent.items()}


def forgetful(inner: Reducer | None) -> Reducer:
    """The reducer, or the exact mean where there is none, if it keeps nothing of what it got.

    Errors: it does, and a second memory would send that twice.
    """
    held = chosen(inner)
    if kept := memories(held):
        raise UserError(
            "what waits would be remembered twice",
            f"{type(held).__name__}, which keeps its {kept.pop()}",
            "a reducer without a memory of gradients",
            "one memory, round what compresses",
        )
    return held


def entries(state: object, who: str, *names: str) -> list[object]:
    """What stands under these names. Errors: a state with others, which another reducer must have written."""
    if not isinstance(state, Mapping):
        raise UserError(f"{who} did not write this state", type(state).__name__, "what state_dict() gave")
    if set(state) != set(names):
        raise UserError(
            f"{who} did not write this state",
            ", ".join(sorted(map(str, state))) or "an empty one",
            ", ".join(names) or "an empty one",
        )
    return [state[name] for name in names]
