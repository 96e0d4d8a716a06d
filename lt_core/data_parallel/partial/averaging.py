"""The tensors of P-Reduce: each rank has its own model and optimizer, and now and then a mean with some others.

No server tells the first weights: all ranks start from the same, and two that meet for the first time compare them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lt_core.base.action import Action, Op
from lt_core.base.costs import Costs
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Trace
from lt_core.comm.comm import Comm
from lt_core.data_parallel.alike import digest
from lt_core.data_parallel.enact import Asked, enact, replay
from lt_core.data_parallel.finite import finite
from lt_core.data_parallel.parameter_server.job import Job
from lt_core.data_parallel.parameter_server.layout import Layout
from lt_core.data_parallel.parameter_server.optimizers import Steps
from lt_core.data_parallel.parameter_server.sides import Loss


class Ended(NamedTuple):
    """What one rank brings home: its weights (elements,) and its trace."""

    weights: Tensor
    trace: Trace


class Averager:
    """One rank's side."""

    def __init__(self, model: nn.Module, loss: Loss, optimizer: Callable[[list[Tensor]], Steps]) -> None:
        self.model, self.loss, self.layout = model, loss, Layout(model)
        self.weights = self.layout.flat(self.layout.parameters)
        self.lines = [*self.layout.lines(), f"weights at the start {digest(self.weights)}"]
        self._parts = [self.weights[low:high] for low, high in self.layout.places]
        self._optimizer = optimizer(self._parts)
        self._came: dict[int, Tensor] = {}

    def compute(self, a: Action) -> None:
        """F: a gradient and a step of one's own. U: the mean of what has come and one's own, summed by rank.

        Errors: a gradient with an inf or a nan.
        """
        if a.op is Op.U:
            self._mean(a.rank)
            return
        self.layout.load(self.weights)
        self.model.zero_grad(set_to_none=True)
        self.loss(self.model, a.rank, a.batch).backward()  # type: ignore[no-untyped-call]
        finite((p.grad for p in self.layout.parameters.values()), a.rank, a.batch)
        for part, p in zip(self._parts, self.layout.parameters.values()):
            part.grad = None if p.grad is None else p.grad.detach().reshape(-1).clone()
        self._optimizer.step()

    def give(self, a: Action) -> Tensor:
        """The weights: one's own, or the mean that they have become."""
        return self.weights.clone()

    def room(self, a: Action) -> Tensor:
        """Memory for as many."""
        return torch.empty_like(self.weights)

    def take(self, a: Action, message: Tensor) -> None:
        """ADD: those of another rank, kept for the mean. COPY: the mean."""
        if a.op is Op.ADD:
            self._came[a.peer] = message
        else:
            self.weights.copy_(message)

    def _mean(self, rank: int) -> None:
        everyone = {**self._came, rank: self.weights}
        first, *others = [everyone[r] for r in sorted(everyone)]
        total = first.clone()
        for one in others:
            total += one
        self.weights.copy_(total / len(everyone))
        self._came.clear()


def run(comm: Comm, job: Job, asked: Asked, costs: Costs | None = None, scale: float = 0.01) -> Ended:
    """Be one of the ranks until it is over. costs, scale: an emulated device, as in `parameter_server.run`.

    Errors: those of `enact`; where two ranks meet that started from different weights, too.
    """
    side = Averager(job.model().to(comm.device), job.loss, job.optimizer)
    trace = enact("P-Reduce", asked, side, comm, costs, scale)
    return Ended(side.weights.cpu(), trace)


def replayed(
    schedule: Schedule, job: Job, watch: Callable[[Action, Sequence[Averager]], None] | None = None
) -> list[Ended]:
    """The recorded order in one process. watch: called after each action, with all ranks as they are then."""
    sides = [Averager(job.model(), job.loss, job.optimizer) for _ in range(schedule.size)]
    replay(schedule, sides, (lambda a: watch(a, sides)) if watch else (lambda a: None))
    return [Ended(side.weights, Trace(schedule.name)) for side in sides]
