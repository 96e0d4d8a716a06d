"""Downpour: workers read every few gradients, push their sum every few, and step by themselves in between.

worker   read F F F F push read F F F F push ...        fetch_every 4, push_every 4: a quarter of the bytes
            \\w -= local_rate * g after each/
server   Adagrad, so that old gradients meet small rates      warm start: at first rank 0 trains alone

One worker that reads and pushes each time is serial Adagrad. Dean and others 2012 (DistBelief).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from torch import nn

from lt_core.base.errors import UserError
from lt_core.data_parallel.parameter_server.book import Book
from lt_core.data_parallel.parameter_server.job import Job
from lt_core.data_parallel.parameter_server.layout import Layout
from lt_core.data_parallel.parameter_server.optimizers import Adagrad
from lt_core.data_parallel.parameter_server.policy import ParameterServer
from lt_core.data_parallel.parameter_server.rules import Asynchronous
from lt_core.data_parallel.parameter_server.sides import Loss


@dataclass(frozen=True, kw_only=True)
class WarmStart(Asynchronous):
    """The rule: nobody waits, once rank 0 alone has made `updates`: many gradients of random weights help nobody."""

    updates: int = 0

    def __post_init__(self) -> None:
        if self.updates < 0:
            raise UserError("a warm start cannot last so long", f"{self.updates} updates", "0 or more")

    def may_read(self, book: Book, rank: int) -> bool:
        """Rank 0 always, the others when it has warmed up."""
        return rank == 0 or book.version >= self.updates


def policy(
    workers: int,
    servers: int = 1,
    fetch_every: int = 1,
    push_every: int = 1,
    warm_updates: int = 0,
    updates: int | None = None,
) -> ParameterServer:
    """Who does what next. Arguments: those of `ParameterServer`. Errors: a warm start that never ends."""
    if updates is not None and warm_updates > updates:
        raise UserError("the warm start never ends", f"{warm_updates} updates of {updates}", "fewer than `updates`")
    return ParameterServer(workers, WarmStart(updates=warm_updates), servers, fetch_every, push_every, updates)


def job(model: Callable[[], nn.Module], loss: Loss, rate: float, local_rate: float = 0.0) -> Job:
    """What is trained: Adagrad of `rate` at the servers, plain steps of `local_rate` at the workers."""
    return Job(model, loss, partial(Adagrad, rate=rate), local_rate)


def law_bytes(layout: Layout, workers: int, rank: int, gradients: int, fetch_every: int, push_every: int) -> int:
    """How many bytes `rank` sends while each worker computes `gradients`, a multiple of `push_every`."""
    if rank < workers:
        return layout.dtype.itemsize * sum(map(layout.message, range(layout.parts))) * (gradients // push_every)
    low, high = layout.bounds(rank - workers)
    return layout.dtype.itemsize * (high - low) * workers * -(-gradients // fetch_every)
