"""The two optimizers that servers in the papers have, for parts of parameters; `torch.optim` fits in their place.

SGD       v <- momentum v + g + decay w        w <- w - rate v
Adagrad   h <- h + g^2                         w <- w - rate g / (sqrt(h) + eps)      each weight its own rate

A parameter whose gradient is None stays where it is, and so does its state (Duchi and others 2011 for Adagrad).
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Steps(Protocol):
    """What a server needs of an optimizer; every one of `torch.optim` will do."""

    def step(self) -> object:
        """Move each parameter by its `.grad`; leave those without one."""
        ...


class SGD:
    """Steps along the gradient, with momentum and weight decay by choice."""

    def __init__(self, parameters: list[Tensor], rate: float, momentum: float = 0.0, decay: float = 0.0) -> None:
        self.parameters, self.rate, self.momentum, self.decay = parameters, rate, momentum, decay
        self._velocity: list[Tensor | None] = [None] * len(parameters)

    @torch.no_grad()
    def step(self) -> None:
        """One step of every parameter that has a gradient."""
        for i, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            move = p.grad.add(p, alpha=self.decay) if self.decay else p.grad
            if self.momentum:
                before = self._velocity[i]
                move = move.clone() if before is None else before.mul_(self.momentum).add_(move)
                self._velocity[i] = move
            p.add_(move, alpha=-self.rate)


class Adagrad:
    """A rate for each weight, which falls with all the gradients that it has seen."""

    def __init__(self, parameters: list[Tensor], rate: float, eps: float = 1e-10) -> None:
        self.parameters, self.rate, self.eps = parameters, rate, eps
        self._squares = [torch.zeros_like(p) for p in parameters]

    @torch.no_grad()
    def step(self) -> None:
        """One step of every parameter that has a gradient."""
        for p, squares in zip(self.parameters, self._squares):
            if p.grad is not None:
                squares.addcmul_(p.grad, p.grad)
                p.addcdiv_(p.grad, squares.sqrt().add_(self.eps), value=-self.rate)
