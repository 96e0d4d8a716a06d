"""Wrong answers to either half of a ring: `half(comm, x, first, add)` begins with chunk rank + first.

`either` gives each with the thought behind it and the property that refuses it, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lt_core.comm.comm import Comm
from lt_core.teaching.checks.exercise import Answer
from lt_core.teaching.checks.ring_answers import chunk, once, passed_on


def forgets_the_tail(comm: Comm, x: Tensor, first: int, add: bool) -> Tensor:
    """Cuts into p chunks of n // p."""
    even = x.numel() // comm.size * comm.size
    y = x.clone()
    y[:even] = once(comm, y[:even].clone(), first, add)
    return y


def in_the_caller_s_x(comm: Comm, x: Tensor, first: int, add: bool) -> Tensor:
    """`contiguous` copies only what is strided."""
    return once(comm, x.contiguous(), first, add)


def in_x_and_put_back(comm: Comm, x: Tensor, first: int, add: bool) -> Tensor:
    """Sends pieces of x itself, which may be strided."""
    before = x.clone()
    y = once(comm, x, first, add).clone()
    x.copy_(before)
    return y


def in_two_messages(comm: Comm, x: Tensor, first: int, add: bool) -> Tensor:
    """Each chunk in two halves."""
    y, p = x.clone(), comm.size
    for k in range(p - 1):
        out, into = chunk(y, comm.rank + first - k, p), chunk(y, comm.rank + first - k - 1, p)
        for part in (0, 1):
            came = passed_on(comm, chunk(out, part, 2), chunk(into, part, 2))
            chunk(into, part, 2).copy_(chunk(into, part, 2) + came if add else came)
    return y


def padded(comm: Comm, x: Tensor, first: int, add: bool) -> Tensor:
    """Sends every chunk as long as the longest."""
    y, p = x.clone(), comm.size
    room = torch.zeros(-(-x.numel() // p), dtype=x.dtype)
    for k in range(p - 1):
        out, into = chunk(y, comm.rank + first - k, p), chunk(y, comm.rank + first - k - 1, p)
        full = room.clone()
        full[: out.numel()] = out
        came = passed_on(comm, full, room)[: into.numel()]
        into.copy_(into + came if add else came)
    return y


def the_back_end_s(comm: Comm, x: Tensor, first: int, add: bool) -> Tensor:
    """Why write it, if it is there?"""
    y = x.nan_to_num()
    comm.all_reduce(y)
    return y


def at_least_one_round(comm: Comm, x: Tensor, first: int, add: bool) -> Tensor:
    """Sends first and asks then, so that a rank alone talks to itself."""
    if comm.size == 1:
        passed_on(comm, x, x)
    return once(comm, x.clone(), first, add)


def returns_nothing(comm: Comm, x: Tensor, first: int, add: bool) -> None:
    """Thinks that the caller sees a copy change."""
    once(comm, x.clone(), first, add)


def all_send_first(comm: Comm, x: Tensor, first: int, add: bool) -> Tensor:
    """Everyone sends before anyone receives."""
    y, r, p = x.clone(), comm.rank, comm.size
    for k in range(p - 1):
        out, into = chunk(y, r + first - k, p), chunk(y, r + first - k - 1, p)
        came = torch.empty_like(into)
        comm.exchange([(out, (r + 1) % p)], [])
        comm.exchange([], [(came, (r - 1) % p)])
        into.copy_(into + came if add else came)
    return y


BOARD: dict[int, Tensor] = {}  # what threads of one process see of each other, and processes do not


def over_a_shared_board(comm: Comm, x: Tensor, first: int, add: bool) -> Tensor:
    """A variable of one rank is there on the others, on threads: "ranks share variables"."""
    BOARD[comm.rank] = x.clone()
    once(comm, x.clone(), first, add)
    held = torch.stack([BOARD[r] for r in range(comm.size)])
    return held.nansum(0)


def either(apply: Callable[[Callable[..., Any]], Callable[..., Any]]) -> tuple[Answer, ...]:
    """What can go wrong in one half; `apply` makes of it a function of comm and x."""
    return (
        Answer("W2", "forgets the tail", apply(forgets_the_tail), "any length", alone=True),
        Answer("W8", "x.contiguous() is a copy", apply(in_the_caller_s_x), "input untouched", alone=True),
        Answer("W9", "x is mine if I put it back", apply(in_x_and_put_back), "strided input", alone=True),
        Answer("W10", "smaller messages are cheaper", apply(in_two_messages), "messages", alone=True),
        Answer("W11", "pads to equal chunks", apply(padded), "bytes", alone=True),
        Answer("W12", "the back end can do it", apply(the_back_end_s), "made of exchanges", alone=True),
        Answer("W13", "there is always a neighbour", apply(at_least_one_round), "one rank alone", alone=True),
        Answer("W14", "no return", apply(returns_nothing), "returns a tensor like its input", alone=True),
        Answer("W15", "all send first", apply(all_send_first), "returns a tensor like its input", alone=True),
        Answer("W16", "ranks share variables", apply(over_a_shared_board), "real processes", alone=True),
    )
