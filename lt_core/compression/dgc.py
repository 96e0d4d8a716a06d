"""Deep gradient compression: momentum that waits with what was not sent.

    u <- m u + g       the velocity of this rank                      An element that waits ten steps should move the
    v <- v + u         what is to be sent                             weights as ten steps of momentum would have. With
    send the largest of v, then v <- 0 and u <- 0 there               error feedback below an optimizer's momentum it
                       (factor masking)                               arrives at once, and is then doubled again.

The optimizer is plain SGD: its own momentum on top would count it twice. Before that each rank clips its gradient to a
norm of clip / sqrt(p), for p of them add up; and for four epochs more is sent: 25 %, 6.25 %, 1.56 %, 0.4 %, then 0.1 %.
Law: v at the end plus all that was sent is the sum of the u, also for gradients of 16 bits, as with error feedback;
without masking and with nothing held back it is momentum SGD, with masking then plain SGD. Bytes: those of the reducer
inside. Weight decay belongs into the gradient before it comes here, as momentum SGD has it.
Paper: Lin, Han, Mao, Wang, Dally 2018, "Deep gradient compression", algorithm 4 and section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import sqrt

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.collectives.agreement import fractions, ordinary
from lt_core.collectives.reducer import Reduced, Reducer, undo
from lt_core.comm.comm import Comm
from lt_core.compression.bucket import Memory, entries, finite, forgetful, names_of, settled
from lt_core.compression.ratio import Ratio, part
from lt_core.compression.top_k import TopK


def deep_gradient_compression(ratio: Ratio = 0.001, momentum: float = 0.9, clip: float | None = None) -> Reducer:
    """All of it: `deep_gradient_compression(warm_up(steps_per_epoch=100))`; arguments of `MomentumCorrection`."""
    return MomentumCorrection(TopK(ratio), momentum, clip=clip)


def warm_up(steps_per_epoch: int, last: float = 0.001) -> Callable[[int], float]:
    """What is sent in step n: a quarter in epoch 0, a quarter of that in epoch 1, .., from epoch 4 on `last`."""
    if steps_per_epoch < 1:
        raise UserError("an epoch has steps", steps_per_epoch, "at least 1")
    part(last)

    def ratio(step: int) -> float:
        return max(last, 0.25 ** (step // steps_per_epoch + 1)) if step < 4 * steps_per_epoch else last

    return ratio


class MomentumCorrection:
    """A reducer around a reducer that sends a part: its momentum, and what waits, lie on this rank.

    masking: whether what was sent stops moving (factor masking). nesterov: u <- m (u + g), v <- v + u + g. clip: the
    norm of all ranks' gradients together, taken over the bucket, so give the whole gradient as one.
    Errors: momentum that is not from 0 up to below 1, a clip that is not above 0, a reducer with a memory of its own.
    """

    def __init__(
        self,
        inner: Reducer,
        momentum: float = 0.9,
        masking: bool = True,
        nesterov: bool = False,
        clip: float | None = None,
    ) -> None:
        if not 0 <= momentum < 1:
            raise UserError("momentum", momentum, "from 0 up to below 1")
        if clip is not None and not clip > 0:
            raise UserError("a norm to clip to", clip, "above 0, or None")
        self.inner, self.momentum, self.masking, self.nesterov = forgetful(inner), momentum, masking, nesterov
        self.clip = clip
        self._velocity, self._waiting = Memory("velocity"), Memory("sum")
        self._before: dict[str, tuple[Tensor, Tensor]] = {}  # (u, v) before the last step

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The inner reducer's mean of what waits, in the dtypes that came in; for an optimizer without momentum.

        Where a mean is not finite, velocity and sum of the whole bucket stay as they were, on every rank; of other
        buckets of that step, see `undo`. Errors: a shape that changed, and the inner reducer's.
        """
        for name in names_of(grads):
            self._before.pop(name, None)  # where this step fails there is none to undo
        ordinary(grads, comm)
        fractions(grads)  # of others the mean is cut off, and what is lost is not remembered
        scale = self._scale(grads, comm.size)
        moved = {name: self._moved(name, x, scale) for name, x in grads.items()}
        mean, passed = self.inner.reduce({name: waiting for name, (_, waiting) in moved.items()}, comm)
        given, sent = settled(mean, passed, grads)
        good = all(map(finite, given.values()))  # also in 16 bits, if the gradient has no more
        for name, (velocity, waiting) in moved.items():
            if good:
                self._before[name] = self._velocity.held[name], self._waiting.held[name]
                self._waiting.held[name] = waiting - sent[name]
                self._velocity.held[name] = velocity * (passed[name] == 0) if self.masking else velocity
        return Reduced(given, sent)

    def undo(self, names: Iterable[str]) -> None:
        """Velocity and sum of these tensors as before their last step: for one that no rank takes, as in
        `ErrorFeedback.undo`."""
        names = set(names)
        for name in self._before.keys() & names:
            self._velocity.held[name], self._waiting.held[name] = self._before.pop(name)
        undo(self.inner, names)

    def state_dict(self) -> dict[str, object]:
        """Velocity and sum of this rank, and what the inner reducer remembers."""
        return {
            "velocity": self._velocity.state(),
            "waiting": self._waiting.state(),
            "inner": self.inner.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what `state_dict` gave on this rank. Errors: another reducer's."""
        velocity, waiting, inner = entries(state, "MomentumCorrection", "velocity", "waiting", "inner")
        self._before = {}
        self._velocity.load(velocity)
        self._waiting.load(waiting)
        if not isinstance(inner, Mapping):
            raise UserError("this is no state of a reducer", type(inner).__name__, "what state_dict() gave")
        self.inner.load_state_dict(inner)

    def _scale(self, grads: Mapping[str, Tensor], size: int) -> float:
        """What makes this rank's norm at most clip / sqrt(p)."""
        if self.clip is None or not grads:
            return 1.0
        squares = [torch.linalg.vector_norm(x.detach(), dtype=torch.float64) ** 2 for x in grads.values()]
        norm = sqrt(float(torch.stack(squares).sum()))
        return min(1.0, self.clip / sqrt(size) / norm) if norm > 0 else 1.0

    def _moved(self, name: str, x: Tensor, scale: float) -> tuple[Tensor, Tensor]:
        """(u, v) after this gradient."""
        velocity, waiting = self._velocity.of(name, x), self._waiting.of(name, x)
        x = x.detach().to(velocity.dtype) * scale
        if self.nesterov:
            velocity = self.momentum * (velocity + x)
            return velocity, waiting + velocity + x
        velocity = self.momentum * velocity + x
        return velocity, waiting + velocity
