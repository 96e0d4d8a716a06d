"""From each rank's gradients to their mean, a bucket at once: the one verb that data parallelism asks for.

    a (2, 3) ┐
    b (3,)   ├─ one flat message a dtype ──> summed over ranks ──> divided by the ranks, once ──> a b c again
    c ()     ┘

One message a tensor would be 12 to 36 times slower where tensors are small. A compressor is another Reducer: it says
what the gradient became on the wire (`sent`), so that what was lost can be remembered (grad - sent).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import NamedTuple, Protocol, cast

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.collectives import machine, native
from lt_core.collectives.agreement import Agreed
from lt_core.collectives.buffers import Scratch
from lt_core.comm.comm import Comm


class Reduced(NamedTuple):
    """By name: the mean over ranks, and what this rank's gradient became on the wire."""

    mean: dict[str, Tensor]
    sent: dict[str, Tensor]


class Reducer(Protocol):
    """Anything that turns a rank's gradients into what all ranks take for their mean."""

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The mean of a bucket: every rank brings the same names in the same order."""
        ...

    def state_dict(self) -> dict[str, object]:
        """What it must remember between steps."""
        ...

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what `state_dict` gave."""
        ...


class Mean:
    """The exact mean: `Mean(ring.schedule)` sums by that schedule, `Mean()` by the backend's own all-reduce."""

    def __init__(self, schedule_of: Callable[[int], Schedule] | None = None) -> None:
        self._schedule_of = cache(schedule_of) if schedule_of else None
        self._scratch = Scratch()
        self._agreed = Agreed()

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The mean of a bucket, of the shapes and dtypes that came in; nothing was lost: `sent` is `grads`.

        Errors: names, shapes or dtypes that differ between ranks (looked at when a bucket is first seen, in one extra
        message), a dtype that has no mean.
        """
        self._agreed(grads, comm)
        mean: dict[str, Tensor] = {}
        for names in _by_dtype(grads):
            flat = torch.cat([grads[name].detach().reshape(-1) for name in names])
            pieces = self.average(flat, comm).split_with_sizes([grads[name].numel() for name in names])
            mean |= {name: piece.view(grads[name].shape) for name, piece in zip(names, pieces)}
        return Reduced({name: mean[name] for name in grads}, dict(grads))

    def state_dict(self) -> dict[str, object]:
        """Nothing: a mean has no past."""
        return {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Accept what `state_dict` gives. Errors: anything else, which another reducer must have written."""
        if state or not isinstance(state, Mapping):
            named = f"a state with {', '.join(map(str, state))}" if isinstance(state, Mapping) else type(state).__name__
            raise UserError("a mean remembers nothing", named, "an empty one")

    def average(self, flat: Tensor, comm: Comm) -> Tensor:
        """The mean of one dense tensor (n,), in place; that all ranks bring n elements of a dtype, the caller knows."""
        return self.total(flat, comm).div_(comm.size)  # once: a division at every hop would round at every hop

    def total(self, flat: Tensor, comm: Comm) -> Tensor:
        """The sum of one dense tensor (n,), in place, by the same schedule."""
        if self._schedule_of is None:
            native.run(comm, flat)
        else:
            machine.run(comm, flat, self._schedule_of(comm.size), scratch=self._scratch)
        return flat


def chosen(reducer: object) -> Reducer:
    """The reducer, or the exact mean where there is none. Errors: what is no reducer, such as its class."""
    if reducer is None:
        return Mean()
    if isinstance(reducer, type) or not callable(getattr(reducer, "reduce", None)):
        got = f"the class {reducer.__name__}" if isinstance(reducer, type) else type(reducer).__name__
        raise UserError("this makes no mean of gradients", got, "a reducer", "TopK(0.01), with its arguments")
    return cast(Reducer, reducer)


def memories(reducer: Reducer) -> set[str]:
    """Under which names of its state a part of a gradient may wait for another step; none for most reducers."""
    return {"residual", "waiting"} & set(reducer.state_dict())


def undo(reducer: Reducer, names: Iterable[str]) -> None:
    """The last step of these tensors is none, for a reducer that can undo it."""
    if callable(undone := getattr(reducer, "undo", None)):
        undone(names)


def _by_dtype(grads: Mapping[str, Tensor]) -> list[list[str]]:
    """The names of each dtype, in their order."""
    groups: dict[torch.dtype, list[str]] = {}
    for name, x in grads.items():
        groups.setdefault(x.dtype, []).append(name)
    return list(groups.values())
