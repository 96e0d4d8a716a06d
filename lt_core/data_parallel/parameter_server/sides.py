"""The two sides of a parameter server, as tensors: what each does for an action, whoever carries its messages.

Worker   COPY: my weights   F: a gradient of them   SEND: a part of the gradient, and which parameters it used
Shard    ADD: keep a gradient   COPY: forget it   U: one step with all that is kept   SEND: the weights

Gradients of one update are summed in the order of ranks, whoever came first, so that the same gradients give the same
bits. `aware`: a gradient that is tau updates old counts 1 / tau (Zhang and others 2015).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from lt_core.base.action import Action, Op
from lt_core.base.errors import UserError
from lt_core.data_parallel.finite import finite
from lt_core.data_parallel.parameter_server.layout import Layout
from lt_core.data_parallel.parameter_server.optimizers import Steps

Loss = Callable[[nn.Module, int, int], Tensor]  # loss(model, worker, clock): of the batch that is this worker's turn


class Worker:
    """Reads weights, computes gradients, pushes them."""

    def __init__(self, model: nn.Module, layout: Layout, loss: Loss, local_rate: float = 0.0) -> None:
        self.model, self.layout, self.loss, self.local_rate = model, layout, loss, local_rate
        self.lines, self.weights = layout.lines(), layout.flat(layout.parameters)
        self._gradient = torch.zeros_like(self.weights)
        self._used: set[int] = set()
        self._pushed = self._read = False

    def compute(self, a: Action) -> None:
        """The gradient of the batch `a.batch`, added to what was not pushed yet. Errors: an inf or a nan in it."""
        if self._pushed:
            self._gradient.zero_()
            self._used.clear()
            self._pushed = False
        if self._read:
            self.layout.load(self.weights)
            self._read = False
        self.model.zero_grad(set_to_none=True)
        self.loss(self.model, a.rank, a.batch).backward()  # type: ignore[no-untyped-call]
        grads = {name: p.grad for name, p in self.layout.parameters.items() if p.grad is not None}
        self._used |= {i for i, name in enumerate(self.layout.parameters) if name in grads}
        flat = self.layout.flat(grads)
        finite([flat], a.rank, a.batch)
        self._gradient += flat
        if self.local_rate:
            self.weights.add_(flat, alpha=-self.local_rate)
            self._read = True

    def give(self, a: Action) -> Tensor:
        """Part `a.unit` of the gradient and, a number a piece, whether it was used."""
        self._pushed = True
        low, high = self.layout.bounds(a.unit)
        used = [float(piece.parameter in self._used) for piece in self.layout.pieces(a.unit)]
        return torch.cat([self._gradient[low:high], self._gradient.new_tensor(used)])

    def room(self, a: Action) -> Tensor:
        """Memory for part `a.unit` of the weights."""
        low, high = self.layout.bounds(a.unit)
        return self.weights.new_empty(high - low)

    def take(self, a: Action, message: Tensor) -> None:
        """The weights as the server has them now."""
        low, high = self.layout.bounds(a.unit)
        self.weights[low:high] = message
        self._read = True


class Shard:
    """The server of one part: its weights and its optimizer's state exist nowhere else."""

    def __init__(
        self,
        layout: Layout,
        part: int,
        optimizer: Callable[[list[Tensor]], Steps],
        divisor: int | None = 1,
        aware: bool = False,
    ) -> None:
        low, high = layout.bounds(part)
        self.lines, self.weights = layout.lines(), layout.flat(layout.parameters)[low:high].clone()
        self._pieces, self._room = layout.pieces(part), layout.message(part)
        self._parameters = [self.weights[p.low : p.high] for p in self._pieces]
        self._optimizer = optimizer(self._parameters) if self._parameters else None
        self._divisor, self._aware = divisor, aware
        self.version, self._read = 0, dict[int, int]()
        self._held: dict[tuple[int, int], Tensor] = {}

    def compute(self, a: Action) -> None:
        """One update of everything that is held."""
        if a.op is not Op.U:
            raise UserError(f"a server does not compute {a}", expected="U")
        messages = [self._held[key] for key in sorted(self._held)]
        whole = self._sum(messages)
        at, divisor = self.weights.numel(), self._divisor or len(messages)
        for parameter, piece, used in zip(self._parameters, self._pieces, whole[at:].tolist()):
            parameter.grad = whole[piece.low : piece.high] / divisor if used else None
        if self._optimizer is not None:
            self._optimizer.step()
        self._held.clear()
        self.version += 1

    def give(self, a: Action) -> Tensor:
        """The weights."""
        self._read[a.peer] = self.version
        return self.weights.clone()

    def room(self, a: Action) -> Tensor:
        """Memory for a gradient and its flags."""
        return self.weights.new_empty(self._room)

    def take(self, a: Action, message: Tensor) -> None:
        """A gradient, held for the next update; a COPY is one that is dropped."""
        if a.op is Op.ADD:
            stale = max(1, self.version - self._read[a.peer]) if self._aware else 1
            self._held[a.peer, a.batch] = message / stale

    @staticmethod
    def _sum(messages: Iterable[Tensor]) -> Tensor:
        first, *others = messages
        whole = first.clone()
        for message in others:
            whole += message
        return whole
