"""Wrong answers to lab 21, each with the thought behind it and the property that refuses it.

`alone` says that no other property has anything against the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from lt_core.comm.comm import Comm
from lt_core.teaching.checks import replicas_wrong_hooks
from lt_core.teaching.checks.exercise import Answer
from lt_core.teaching.checks.replicas_answers import buckets, flat_of, give_back, take_mean, used_anywhere
from lt_core.teaching.checks.replicas_model import BUCKET_BYTES

BOARD: dict[tuple[int, int], Tensor] = {}  # what ranks that are threads could share


def changed(after: Callable[[Comm, Tensor, Tensor], Tensor]) -> Callable[..., None]:
    """The right answer, but `after(comm, own, total)` is taken for the mean."""

    def average(model: nn.Module, comm: Comm, bucket_bytes: int) -> None:
        for bucket in buckets(used_anywhere(comm, model), bucket_bytes):
            own = flat_of(bucket)
            total = own.clone()
            comm.all_reduce(total)
            give_back(bucket, after(comm, own, total))

    return average


def cut(chosen: Callable[[list[list[nn.Parameter]]], list[list[nn.Parameter]]]) -> Callable[..., None]:
    """The right answer on other buckets."""

    def average(model: nn.Module, comm: Comm, bucket_bytes: int) -> None:
        for bucket in chosen(buckets(used_anywhere(comm, model), bucket_bytes)):
            take_mean(bucket, comm)

    return average


def without_the_last(found: list[list[nn.Parameter]]) -> list[list[nn.Parameter]]:
    """A bucket leaves when it is full; one that never gets full stays."""
    return [bucket for bucket in found if sum(p.nbytes for p in bucket) >= BUCKET_BYTES]


def one_by_one(found: list[list[nn.Parameter]]) -> list[list[nn.Parameter]]:
    """No buckets at all."""
    return [[p] for bucket in found for p in bucket]


def with_(parameters: Callable[[nn.Module], Sequence[nn.Parameter]]) -> Callable[..., None]:
    """Nobody is asked who has what: these travel."""

    def average(model: nn.Module, comm: Comm, bucket_bytes: int) -> None:
        for bucket in buckets(parameters(model), bucket_bytes):
            take_mean(bucket, comm)

    return average


def own_ones(model: nn.Module) -> list[nn.Parameter]:
    """Those that have a gradient here."""
    return [p for p in list(model.parameters())[::-1] if p.grad is not None]


def all_of_them(model: nn.Module) -> list[nn.Parameter]:
    """None becomes zeros."""
    return list(model.parameters())[::-1]


def tied_twice(model: nn.Module, comm: Comm, bucket_bytes: int) -> None:
    """Goes through modules, and meets a tied parameter in each of its homes."""
    names = [p for _, p in model.named_parameters(remove_duplicate=False)][::-1]
    used = {id(p) for p in used_anywhere(comm, model)}
    for bucket in buckets([p for p in names if id(p) in used], bucket_bytes):
        take_mean(bucket, comm)


def one_dtype(model: nn.Module, comm: Comm, bucket_bytes: int) -> None:
    """Concatenates what it finds: torch makes double precision of both."""
    used, bucket = used_anywhere(comm, model), list[nn.Parameter]()
    for p in used:
        bucket.append(p)
        if sum(q.nbytes for q in bucket) >= bucket_bytes or p is used[-1]:
            take_mean(bucket, comm)
            bucket = []


def on_a_board(model: nn.Module, comm: Comm, bucket_bytes: int) -> None:
    """Every rank reads the others' gradients where they lie: ranks that are processes have nothing of the kind."""
    for number, bucket in enumerate(buckets(used_anywhere(comm, model), bucket_bytes)):
        BOARD[comm.rank, number] = flat_of(bucket)
        comm.all_reduce(torch.zeros(1))  # all have written
        give_back(bucket, sum(BOARD[r, number] for r in range(comm.size)) / comm.size)  # type: ignore[arg-type]


WRONG: dict[str, tuple[Answer, ...]] = {
    "21.average": (
        Answer("W1", "sum without division", changed(lambda comm, own, total: total), "values", alone=True),
        Answer("W2", "divides twice", changed(lambda comm, own, total: total / comm.size**2), "values", alone=True),
        Answer("W3", "skips its own None", with_(own_ones), "unused on one rank", alone=True),
        Answer("W4", "None becomes zeros", with_(all_of_them), "unused everywhere", alone=True),
        Answer("W5", "tied twice", tied_twice, "tied once", alone=True),
        Answer("W7", "forgets the last bucket", cut(without_the_last), "the last bucket", alone=True),
        Answer("W8", "one message a parameter", cut(one_by_one), "a message a bucket", alone=True),
        Answer(
            "W9",
            "adds its own share by itself",
            changed(lambda comm, own, total: own / comm.size + (total - own) / comm.size),
            "same bits on every rank",
            alone=True,
        ),
        Answer("W10", "one dtype for all", one_dtype, "two dtypes", alone=True),
        Answer("W11", "reads the others' memory", on_a_board, "real processes", alone=True),
    ),
    **replicas_wrong_hooks.WRONG,
}
