"""Error feedback: what a reducer loses of a gradient is kept, and added to the next one. Nothing is lost, only late.

    step   gradient + memory = x    --reducer-->   sent      memory = x - sent
    0      (4, 3)    (0, 0)   (4, 3)     top-1     (4, 0)    (0, 3)          without it the second element is
    1      (4, 3)    (0, 3)   (4, 6)               (0, 6)    (4, 0)          never sent, and never learned

Law (conservation): the sum of what was sent and the memory at the end are the sum of the gradients, on every rank; and
as the mean over ranks of `sent` is `mean`, no gradient is lost or counted twice. That holds for gradients of 16 bits
too: what rounding takes from their mean is taken from `sent`, and waits.
Papers: Seide and others 2014; Karimireddy and others 2019. The order of the learning rate: Alistarh and others 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.collectives.agreement import fractions, ordinary
from lt_core.collectives.reducer import Reduced, Reducer, undo
from lt_core.comm.comm import Comm
from lt_core.compression.bucket import Memory, entries, finite, forgetful, names_of, settled


class ErrorFeedback:
    """A reducer around a reducer: `ErrorFeedback(TopK(0.01))`. Its memory lies on this rank, in at least 32 bits.

    learning_rate: where it changes, give what tells it, such as `lambda: optimizer.param_groups[0]["lr"]`: then what
    waits is scaled by the rate of the step in which it arose (memory + rate * gradient, as Alistarh and others analyse
    it), not of the step that sends it. The mean is divided by the rate of now, for the optimizer multiplies it again.
    Errors: a reducer that has a memory of its own.
    """

    def __init__(self, inner: Reducer, learning_rate: Callable[[], float] | None = None) -> None:
        self.inner, self._learning_rate = forgetful(inner), learning_rate
        self._memory = Memory("memory")
        self._spare: dict[str, Tensor] = {}  # what was remembered before: room for the next gradient
        self._last: set[str] = set()  # whose last step can be undone

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The inner reducer's mean of gradient and memory, in the dtypes that came in; `sent` is what came into it.

        Where a mean is not finite, the memory of the whole bucket stays as it was, on every rank, for that step is to
        be skipped: what is inf or nan of it may not all have been sent. Other buckets of that step have then sent what
        nobody takes: see `undo`. Errors: a shape that changed, a rate that is not above 0, and the inner reducer's.
        """
        self._last -= names_of(grads)  # where this step fails there is none to undo
        ordinary(grads, comm)
        fractions(grads)  # of others the mean is cut off, and what is lost is not remembered
        rate = self._rate()
        held = {name: self._memory.of(name, x) for name, x in grads.items()}
        recalled = {name: self._recalled(name, grads[name], held[name], rate) for name in grads}
        mean, sent = self.inner.reduce(recalled, comm)
        given, sent = settled(mean, sent, grads, rate)
        good = all(map(finite, given.values()))  # also in 16 bits, if the gradient has no more
        for name, x in recalled.items():
            self._remember(name, x, sent[name], held[name], good)
        return Reduced(given, sent)

    def undo(self, names: Iterable[str]) -> None:
        """Remember of these tensors what was remembered before their last step, on each rank that calls it.

        For a step that no rank takes, because a mean of another bucket is not finite: what this one sent of the memory
        would be lost. names: of the gradients of that step. Where the memory has stayed as it was, nothing changes.
        """
        names = set(names)
        for name in self._last.intersection(names):
            self._memory.held[name], self._spare[name] = self._spare[name], self._memory.held[name]
            self._last.remove(name)
        undo(self.inner, names)

    def residual(self, name: str) -> Tensor:
        """What waits on this rank for the next step of this tensor, times the rate if there is one."""
        return self._memory.held[name]

    def state_dict(self) -> dict[str, object]:
        """The memory of this rank, and what the inner reducer remembers."""
        return {"residual": self._memory.state(), "inner": self.inner.state_dict()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what `state_dict` gave on this rank. Errors: another reducer's."""
        residual, inner = entries(state, "ErrorFeedback", "residual", "inner")
        self._memory.load(residual)
        self._spare, self._last = {}, set()
        if not isinstance(inner, Mapping):
            raise UserError("this is no state of a reducer", type(inner).__name__, "what state_dict() gave")
        self.inner.load_state_dict(inner)

    def _rate(self) -> float:
        rate = self._learning_rate() if self._learning_rate else 1.0
        if not rate > 0:
            raise UserError("what waits is scaled by the learning rate", rate, "a rate above 0")
        return rate

    def _remember(self, name: str, x: Tensor, sent: Tensor, before: Tensor, good: bool) -> None:
        """Keep x - sent where x lies, and what was remembered before as room for the next x."""
        whole = sent.data_ptr() == x.data_ptr()  # all of it was sent, and x is the caller's now
        if good:
            self._memory.held[name] = self._zeros(before) if whole else x.sub_(sent)
            self._spare[name] = before
            self._last.add(name)
        else:
            self._last.discard(name)
            if whole:
                self._spare.pop(name, None)

    @staticmethod
    @torch.inference_mode(False)
    def _zeros(like: Tensor) -> Tensor:
        return torch.zeros_like(like)

    def _recalled(self, name: str, x: Tensor, held: Tensor, rate: float) -> Tensor:
        """Memory plus gradient, in memory that a step before has left: new memory costs more than the sum."""
        spare = self._spare.get(name)
        out = spare if spare is not None and spare.dtype == held.dtype and spare.device == held.device else None
        with torch.inference_mode(False):
            out = torch.empty_like(held) if out is None else out
        return torch.add(held, x.detach(), alpha=rate, out=out)
