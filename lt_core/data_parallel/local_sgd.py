"""Local SGD: each rank makes H steps of its own, then all take the mean of their weights; talk is H times rarer.

    rank 0   step step step step  mean  step step step step  mean        between two means the ranks drift apart, the
    rank 1   step step step step   |    step step step step   |          further the more steps and the larger they are

    post-local   | sync sync sync ... sync | step step step step  mean ...     first synchronous, then local: the early,
                                                                               noisy part of training drifts most

With H = 1 and plain SGD, or SGD with momentum whose buffers stay local, this is synchronous training: the mean of
w - eta g_r is w - eta mean(g_r). With Adam it is not, for a mean of quotients is no quotient of means. What is inf or
nan on one rank is so on all after the next mean.

Law: as many bytes and messages as a bucketed step, once in H steps:
    bytes     2 n w (p - 1) / p     seconds   H (compute) + wire

A learning rate that follows a schedule should count the samples of all ranks, not local steps alone.
Papers: Stich 2018, "Local SGD converges fast and communicates little"; Lin and others 2018, "Don't use large
mini-batches, use local SGD" (post-local).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from lt_core.base.errors import UserError
from lt_core.collectives.reducer import Reducer, chosen
from lt_core.comm.comm import Comm
from lt_core.data_parallel.replicate import bucketed
from lt_core.data_parallel.replicate.buckets import BUCKET_BYTES, in_backward_order
from lt_core.data_parallel.replicate.roll import how_many
from lt_core.data_parallel.replicate.start import broadcast


def replicate(
    model: nn.Module,
    comm: Comm,
    every: int,
    first_synchronous: int = 0,
    reducer: Reducer | None = None,
    bucket_bytes: int = BUCKET_BYTES,
) -> Local:
    """The replica of a model whose weights meet every so many steps: `sync()` before each step, `average()` after it.

    every: H, local steps between two means.  first_synchronous: how many steps at first take the mean of gradients, as
    `bucketed` does (post-local SGD).  reducer: of the weights, so one that leaves nothing out.  Else arguments and
    errors are those of `bucketed.replicate`.
    """
    if not isinstance(every, int) or every < 1:
        raise UserError("local SGD averages every so many steps", every, "at least 1")
    if not isinstance(first_synchronous, int) or first_synchronous < 0:
        raise UserError("so many steps cannot be synchronous", first_synchronous, "0 or more")
    return Local(model, comm, every, first_synchronous, reducer, bucket_bytes)


class Local:
    """Counts the steps, and knows when ranks talk."""

    def __init__(
        self, model: nn.Module, comm: Comm, every: int, first: int, reducer: Reducer | None, bucket_bytes: int
    ) -> None:
        self.model, self.comm, self.every, self.first = model, comm, every, first
        self.bucket_bytes, self.steps = bucket_bytes, 0
        self._mean = chosen(reducer)
        self._synchronous = bucketed.replicate(model, comm, None, bucket_bytes)

    @property
    def alone(self) -> bool:
        """Whether the next step is this rank's own."""
        return self.steps >= self.first

    def sync(self, samples: float | None = None) -> None:
        """Between backward and step: the mean of all gradients while that is synchronous, this rank's own afterwards.

        samples: of how many the loss was the sum: the own gradient is then divided by one's own, so that it stays a
        mean. Errors: samples that are no number; those of `bucketed` while that is synchronous.
        """
        if not self.alone:
            self._synchronous.sync(samples)
        elif own := how_many(samples):
            for p in self.model.parameters():
                if p.grad is not None:
                    p.grad /= own

    def average(self, now: bool = False) -> bool:
        """After each step: whether the weights have just become the mean of all ranks'.

        They do after every H-th local step; and at once with `now=True` (the end of training), which counts no step.
        Parameters and floating buffers are averaged, other buffers become rank 0's; the optimizer's state stays this
        rank's own. Errors: those of the reducer, such as a dtype that has no mean.
        """
        if not now:
            local = self.steps - self.first + 1 if self.alone else 0
            self.steps += 1
            if local == 0 or local % self.every:
                return False
        self._average()
        return True

    def state_dict(self) -> dict[str, object]:
        """Which step is next, and what the reducer must remember; the model's and the optimizer's are yours."""
        return {"steps": self.steps, "reducer": self._mean.state_dict()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what `state_dict` gave: else this rank would average out of turn. Errors: another's state."""
        steps, reducer = state.get("steps"), state.get("reducer")
        if not isinstance(steps, int) or not isinstance(reducer, Mapping):
            raise UserError("this is no state of local SGD", sorted(state), "what state_dict() gave")
        self._mean.load_state_dict(reducer)
        self.steps = steps

    @torch.no_grad()
    def _average(self) -> None:
        tensors: dict[str, Tensor] = {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}
        means = {name: x for name, x in tensors.items() if x.is_floating_point() or x.is_complex()}
        for names in in_backward_order(means, self.bucket_bytes):
            for name, mean in self._mean.reduce({name: means[name] for name in names}, self.comm).mean.items():
                means[name].copy_(mean)
        broadcast(self.comm, [x for name, x in tensors.items() if name not in means])


def law_messages(size: int, elements: Sequence[int], itemsize: int, rank: int, bucket_bytes: int = BUCKET_BYTES) -> int:
    """How many messages `rank` sends over rings in H steps. elements: of each parameter and floating buffer."""
    return bucketed.law_messages(size, elements, itemsize, rank, bucket_bytes)


def law_bytes(size: int, elements: Sequence[int], itemsize: int, rank: int, bucket_bytes: int = BUCKET_BYTES) -> int:
    """How many bytes `rank` sends over rings in H steps."""
    return bucketed.law_bytes(size, elements, itemsize, rank, bucket_bytes)


def law_seconds(every: int, compute_s: float, wire_s: float) -> float:
    """How long H = `every` steps take, of which each computes `compute_s`, and the mean of the weights."""
    return every * compute_s + wire_s
