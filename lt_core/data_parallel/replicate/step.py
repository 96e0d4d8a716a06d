"""A whole step as a schedule: forwards, backwards from the last block on, and a ring for each bucket on the wire.

    compute  F0 F1 F2 B2 B1 B0               bucket k carries the gradients of block n - 1 - k: that is the order in
    wire               [0 ][1 ][2 ]          which a backward makes them. `ready` says whose backward it waits for.

With it `simulate` prices a step before there are machines to run it on, and a view draws where the wire idles.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from lt_core.base.action import Action, Op
from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.collectives.ring import once_round
from lt_core.collectives.rounds import ADD, COPY, Round, of_rounds


def after_backward(blocks: int, size: int) -> Schedule:
    """The step of `naive` and `bucketed`: no bucket leaves before the backward is over. One bucket a block."""
    return schedule("bucketed", blocks, size, lambda bucket: 0)


def beside_backward(blocks: int, size: int) -> Schedule:
    """The step of `overlapped`: a bucket leaves when its own block's backward is over. One bucket a block."""
    return schedule("overlapped", blocks, size, lambda bucket: blocks - 1 - bucket)


def schedule(name: str, blocks: int, size: int, ready: Callable[[int], int]) -> Schedule:
    """One step of `size` ranks; ready(k): the block for whose backward bucket k waits.

    Units: F and B of block b are b; chunk c of bucket k is k * size + c. Errors: no blocks, no ranks.
    """
    if blocks < 1:
        raise UserError(f"{name} needs blocks", blocks, "at least 1")
    rounds = [messages for bucket in range(blocks) for messages in _ring(bucket, size)]
    wire = of_rounds(name, size, rounds)
    lanes = tuple((*_computed(blocks, rank), *lane) for rank, lane in enumerate(wire.lanes))
    needs = {a: (*before, *_backward(a, size, ready)) for a, before in wire.needs.items()}
    for lane in lanes:
        needs |= {a: (before,) for before, a in pairwise(a for a in lane if a.op.stream == "compute")}
    return Schedule(name, lanes, needs)


def _ring(bucket: int, size: int) -> list[Round]:
    rounds = [*once_round(size, ADD, 0), *once_round(size, COPY, 1)]
    return [[m._replace(unit=bucket * size + m.unit) for m in messages] for messages in rounds]


def _computed(blocks: int, rank: int) -> list[Action]:
    forward = [Action(Op.F, block, 0, rank) for block in range(blocks)]
    return [*forward, *(Action(Op.B, block, 0, rank) for block in reversed(range(blocks)))]


def _backward(a: Action, size: int, ready: Callable[[int], int]) -> tuple[Action, ...]:
    """What the first round of a bucket waits for."""
    bucket, first = a.unit // size, a.batch % (2 * (size - 1)) == 0
    return (Action(Op.B, ready(bucket), 0, a.rank),) if first else ()
