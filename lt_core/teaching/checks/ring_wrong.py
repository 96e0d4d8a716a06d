"""Wrong answers to lab 20's ring, each with the thought behind it and the property that refuses it.

`alone` says that no other property has anything against the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from lt_core.comm.comm import Comm
from lt_core.teaching.checks.exercise import Answer
from lt_core.teaching.checks.ring_answers import all_gather, chunk, once, passed_on, reduce_scatter
from lt_core.teaching.checks.ring_wrong_halves import either


def owner_off_by_one(comm: Comm, x: Tensor) -> Tensor:
    """Right for two ranks only: rank r ends with chunk r - 1."""
    return once(comm, x.clone(), -2, add=True)


def whole_vectors(comm: Comm, y: Tensor) -> Tensor:
    """Passes all it has each time: right, at p times the bytes."""
    z = passing = y.clone()
    for _ in range(comm.size - 1):
        passing = passed_on(comm, passing, passing)
        z = torch.where(z.isnan(), passing, z)
    return z


def whole_sums(comm: Comm, x: Tensor) -> Tensor:
    """Sums as it should, and then passes all it has each time."""
    mine = chunk(reduce_scatter(comm, x), comm.rank + 1, comm.size)
    y = torch.full_like(x, torch.nan)
    chunk(y, comm.rank + 1, comm.size).copy_(mine)
    return whole_vectors(comm, y)


def divides_at_each_hop(comm: Comm, x: Tensor) -> Tensor:
    """A mean was on the learner's mind."""
    y, p = x.clone(), comm.size
    for k in range(p - 1):
        into = chunk(y, comm.rank - k - 1, p)
        into.copy_((into + passed_on(comm, chunk(y, comm.rank - k, p), into)) / p)
    return y


def divides_once(comm: Comm, x: Tensor) -> Tensor:
    """A mean, by the book: nobody asked for one."""
    return all_gather(comm, reduce_scatter(comm, x)) / comm.size


def adds_into_what_it_sends(comm: Comm, x: Tensor) -> Tensor:
    """The two indices are one."""
    y, p = x.clone(), comm.size
    for k in range(p - 1):
        out = chunk(y, comm.rank - k, p)
        out.add_(passed_on(comm, out, out))
    return y


def each_in_its_own_order(comm: Comm, x: Tensor) -> Tensor:
    """Everyone hears everyone and adds as it comes: own number first, then the left neighbour's."""
    total = passing = x.clone()
    for _ in range(comm.size - 1):
        passing = passed_on(comm, passing, passing)
        total = total + passing
    return total


def works_on_equal_data(comm: Comm, x: Tensor) -> Tensor:
    """It did when every rank held ones."""
    return x * comm.size


def keeps_what_it_has(comm: Comm, y: Tensor) -> Tensor:
    """Begins with chunk `rank`, which is not finished yet."""
    return once(comm, y.clone(), 0, add=False)


def rounded(comm: Comm, x: Tensor, first: int, add: bool) -> Tensor:
    """Keeps what comes in single precision."""
    mine = chunk(x, comm.rank + 1, comm.size)
    y = once(comm, x.clone(), first, add).float().double()
    chunk(y, comm.rank + 1, comm.size).copy_(mine)
    return y


def _first_half(half: Callable[..., Any]) -> Callable[..., Any]:
    return partial(half, first=0, add=True)


def _second_half(half: Callable[..., Any]) -> Callable[..., Any]:
    return partial(half, first=1, add=False)


def _in_the_first(half: Callable[..., Any]) -> Callable[..., Tensor]:
    def both(comm: Comm, x: Tensor) -> Tensor:
        return all_gather(comm, half(comm, x, 0, True))

    return both


def _in_the_second(half: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def both(comm: Comm, x: Tensor) -> Tensor:
        return half(comm, reduce_scatter(comm, x), 1, False)

    return both


WRONG: dict[str, tuple[Answer, ...]] = {
    "20.reduce_scatter": (
        Answer("W1", "owner off by one", owner_off_by_one, "owner", alone=True),
        Answer("W4", "divides at each hop", divides_at_each_hop, "values", alone=True),
        Answer("W5", "adds into what it sends", adds_into_what_it_sends, "values", alone=True),
        Answer("W7", "equal data on all ranks", works_on_equal_data, "values"),
        *either(_first_half),
    ),
    "20.all_gather": (
        Answer("W3", "passes whole vectors", whole_vectors, "bytes", alone=True),
        Answer("W6", "single precision will do", _second_half(rounded), "same bits on every rank", alone=True),
        Answer("W7", "begins with chunk `rank`", keeps_what_it_has, "values", alone=True),
        *either(_second_half),
    ),
    "20.all_reduce": (
        Answer("W3", "passes whole vectors", whole_sums, "bytes", alone=True),
        Answer("W4", "divides by p", divides_once, "values", alone=True),
        Answer("W5", "single precision will do", _in_the_second(rounded), "same bits on every rank", alone=True),
        Answer("W6", "each sums in its own order", each_in_its_own_order, "same bits on every rank"),
        Answer("W7", "equal data on all ranks", works_on_equal_data, "values"),
        *either(_in_the_first),
    ),
}
