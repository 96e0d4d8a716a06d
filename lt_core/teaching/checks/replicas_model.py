"""What lab 21's exercises are handed: small models whose gradients are known, on ranks that use them differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from lt_core.base.work import Work
from lt_core.comm.comm import Comm
from lt_core.teaching.checks.exercise import Make

BUCKET_BYTES = 64  # two parameters of four doubles


class Setup(NamedTuple):
    """One rank's model: the gradient of each parameter, or None; their dtypes; whether the first comes twice."""

    grads: tuple[Tensor | None, ...]
    elements: tuple[int, ...]
    dtypes: tuple[torch.dtype, ...]
    tied: bool = False

    def model(self) -> nn.Module:
        """The model, its gradients in place."""
        model, again = nn.Module(), nn.Module()
        for number, (grad, n, dtype) in enumerate(zip(self.grads, self.elements, self.dtypes, strict=True)):
            parameter = nn.Parameter(torch.zeros(n, dtype=dtype))
            parameter.grad = None if grad is None else grad.clone()
            model.register_parameter(f"w{number}", parameter)
            if self.tied and number == 0:
                again.register_parameter("w0", parameter)
        model.add_module("again", again)
        return model


def drawn(
    elements: Sequence[int] = (),
    unused: Callable[[int, int], bool] = lambda rank, number: False,
    dtypes: Sequence[torch.dtype] = (torch.float64,),
    fractions: bool = False,
    tied: bool = False,
) -> Make:
    """Gradients that differ by rank and place; `elements` of each parameter, or as many parameters of four as asked."""

    def made(random: torch.Generator, size: int, count: int) -> list[Setup]:
        lengths = tuple(elements) or (4,) * count
        kinds = tuple(dtypes[k % len(dtypes)] for k in range(len(lengths)))
        return [Setup(tuple(_grads(random, rank, lengths, kinds)), lengths, kinds, tied) for rank in range(size)]

    def _grads(
        random: torch.Generator, rank: int, lengths: Sequence[int], kinds: Sequence[torch.dtype]
    ) -> Iterator[Tensor | None]:
        for number, (n, kind) in enumerate(zip(lengths, kinds, strict=True)):
            whole = 4.0 * torch.randint(1, 10**5, (n,), generator=random)
            shown = torch.rand(n, generator=random, dtype=torch.float64) if fractions else whole
            yield None if unused(rank, number) else shown.to(kind)

    return made


def mean(given: Sequence[Setup], number: int) -> Tensor | None:
    """What every rank's gradient of a parameter must become."""
    there = [setup.grads[number] for setup in given]
    found = [grad for grad in there if grad is not None]
    return torch.stack(found).sum(0) / len(given) if found else None


def averaged(fn: Callable[..., Any], comm: Comm, setup: Setup) -> list[Tensor | None]:
    """The gradients after the learner's average, in the order of the parameters."""
    model = setup.model()
    fn(model, comm, BUCKET_BYTES)
    return [p.grad for p in model.parameters()]


class Layers(NamedTuple):
    """A chain of layers x -> x * w_a * w_b ..., in this rank's order; `before`: what their gradients already hold."""

    weights: tuple[float, ...]
    x: float
    order: tuple[int, ...]
    before: float = 0.0

    def model(self) -> nn.ParameterList:
        """The weights, each a parameter of one number."""
        model = nn.ParameterList(nn.Parameter(torch.tensor(w, dtype=torch.float64)) for w in self.weights)
        for parameter in model:
            parameter.grad = torch.full_like(parameter, self.before) if self.before else None
        return model

    def gradients(self) -> list[float]:
        """By hand: the product of all other factors, on top of what was there."""
        product = self.x * torch.tensor(self.weights, dtype=torch.float64).prod().item()
        return [self.before + product / w for w in self.weights]


def layers(orders: Callable[[int, int], tuple[int, ...]], before: float = 0.0) -> Make:
    """Powers of two, so that every product is exact, no two alike; `orders(rank, layers)`: as a rank uses them."""

    def made(random: torch.Generator, size: int, count: int) -> list[Layers]:
        weights = tuple((2.0 ** torch.randperm(count, generator=random)).tolist())
        return [
            Layers(weights, 2.0 ** (rank + 1), orders(rank, count), before and 8.0 * (rank + 1)) for rank in range(size)
        ]

    return made


class Watched:
    """A communicator that notes what was begun, and what was waited for, while the backward runs."""

    def __init__(self, inner: Comm) -> None:
        self._inner, self.busy, self.begun, self.waited = inner, False, 0, 0

    def start(self, verb: str, *args: Any) -> Work:
        """The inner one's, noted."""
        self.begun += self.busy
        return Waited(self, self._inner.start(verb, *args))

    def all_reduce(self, x: Tensor, mean: bool = False) -> None:
        """Begun and waited for."""
        self.start("all_reduce", x, mean).wait()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Waited:
    """A Work whose wait is noted."""

    def __init__(self, watched: Watched, work: Work) -> None:
        self._watched, self._work = watched, work

    def wait(self) -> None:
        """The inner one's, noted."""
        self._watched.waited += self._watched.busy
        self._work.wait()

    def span(self) -> tuple[float, float]:
        """The inner one's."""
        return self._work.span()


def overlapped(fn: Callable[..., Any], comm: Comm, chain: Layers) -> list[Any]:
    """[gradients, how many were begun in the backward, how many waited for] of the learner's hooks."""
    model, watched = chain.model(), Watched(comm)
    finish = fn(model, watched)
    x = torch.tensor(chain.x, dtype=torch.float64)
    for number in chain.order:
        x = x * model[number]
    watched.busy = True
    x.backward()  # type: ignore[no-untyped-call]
    watched.busy = False
    if callable(finish):
        finish()
    return [[p.grad for p in model], watched.begun, watched.waited]
