"""Lab 21: the mean of all gradients in buckets, the same beside the backward, and the bucket for a wire.

average_gradients(model, comm, bucket_bytes)     every .grad becomes the mean; None where no rank has one
overlap(model, comm) -> finish                   hooks begin it in the backward, finish() waits
pick(elements, backward_s, p, wire) -> bytes     the fastest of CHOICES
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lt_core.comm.laws import all_reduce_bytes, rounds
from lt_core.teaching.checks import fastest, replicas_pick
from lt_core.teaching.checks.exercise import Case, Exercise, Property, Run
from lt_core.teaching.checks.replicas_model import averaged, drawn, layers, mean, overlapped
from lt_core.teaching.checks.tensors import shown
from lt_core.teaching.same import same_bits

VALUES = "values"
SLACK_BYTES = 300  # for telling each other who has which gradient


def the_means(run: Run) -> str:
    """A judge: every gradient is the mean over ranks, in its own dtype; None stays where no rank has one."""
    for rank, outcome in enumerate(run.outcomes):
        for number, found in enumerate(outcome.value):
            if wrong := _unlike(found, mean(run.given, number)):
                return f"{run.case}: rank {rank}, parameter {number}: {wrong}"
    return ""


def _unlike(found: Any, right: Tensor | None) -> str:
    if found is None or right is None:
        return "" if found is right else f".grad is {_text(found)}, expected {_text(right)}"
    if found.dtype != right.dtype:
        return f".grad is {found.dtype}, expected {right.dtype}"
    return (
        "" if torch.allclose(found, right, rtol=1e-6, atol=0) else f".grad is {_text(found)}, expected {_text(right)}"
    )


def _text(x: Any) -> str:
    return shown(x) if isinstance(x, Tensor) else str(x)


def same_bits_everywhere(run: Run) -> str:
    """A judge: all ranks hold the same bits."""
    for rank, outcome in enumerate(run.outcomes):
        if not all(same_bits(a, b) for a, b in zip(outcome.value, run.outcomes[0].value)):
            return f"{run.case}: rank {rank} has other bits than rank 0; let all take the result of one sum"
    return ""


def one_message_a_bucket(run: Run) -> str:
    """A judge: as many all-reduces as there are buckets, and at most two to ask who has what."""
    buckets, each = -(-run.case.elements // 2), rounds("all_reduce", run.case.size)
    sent = run.outcomes[0].traffic.messages
    if buckets * each <= sent <= (buckets + 2) * each:
        return ""
    return f"{run.case}: sent {sent} messages; {buckets} buckets are {buckets} all-reduces of {each} messages each"


def each_once(run: Run) -> str:
    """A judge: no more bytes than the parameters have, each counted once."""
    law = all_reduce_bytes(8 * sum(run.given[0].elements), run.case.size)
    sent = run.outcomes[0].traffic.bytes
    if sent <= law + SLACK_BYTES:
        return ""
    return f"{run.case}: sent {sent:,} bytes, the parameters are {law:,}: one comes twice"


def the_sums(run: Run) -> str:
    """A judge of hooks: the mean of what each rank's gradient holds after the backward."""
    by_rank = [chain.gradients() for chain in run.given]
    right = [sum(parts) / run.case.size for parts in zip(*by_rank)]
    for rank, outcome in enumerate(run.outcomes):
        for number, (found, wanted) in enumerate(zip(outcome.value[0], right)):
            if not isinstance(found, Tensor) or abs(found.item() - wanted) > 1e-9 * abs(wanted):
                return f"{run.case}: rank {rank}, layer {number}: .grad is {_text(found)}, expected {wanted:,.6g}"
    return ""


def begun(run: Run) -> str:
    """A judge of hooks: something was begun while the backward ran."""
    late = [rank for rank, o in enumerate(run.outcomes) if not o.value[1]]
    return f"{run.case}: rank {late[0]} began nothing before its backward had ended" if late else ""


def not_waited(run: Run) -> str:
    """A judge of hooks: nothing was waited for while the backward ran."""
    held = [(rank, o.value[2]) for rank, o in enumerate(run.outcomes) if o.value[2]]
    return f"{run.case}: rank {held[0][0]} waited {held[0][1]} times within its backward" if held else ""


def _cases(what: str, make: Any, sizes: tuple[int, ...] = (2, 4), count: int = 6) -> tuple[Case, ...]:
    return tuple(Case(p, count, make, f"{what} on {p} ranks") for p in sizes)


FULL = _cases("three full buckets", drawn())
STRAIGHT = _cases("four layers", layers(lambda rank, n: tuple(range(n))), count=4)
AVERAGE = (
    Property(VALUES, FULL, the_means),
    Property(
        "same bits on every rank", _cases("fractions", drawn(fractions=True), (3,)), same_bits_everywhere, (VALUES,)
    ),
    Property("a message a bucket", _cases("six full buckets", drawn(), (2, 3), 12), one_message_a_bucket, (VALUES,)),
    Property("the last bucket", _cases("a half-full bucket", drawn(), (2,), 5), the_means, (VALUES,)),
    Property(
        "unused on one rank",
        _cases("each rank uses another half", drawn(unused=lambda r, k: k % 2 == r), (2,), 4),
        the_means,
        (VALUES,),
    ),
    Property(
        "unused everywhere", _cases("one is unused", drawn(unused=lambda r, k: k == 1), (2,), 7), the_means, (VALUES,)
    ),
    Property("tied once", _cases("a tied parameter", drawn((64, 4, 4), tied=True), (2,)), each_once, (VALUES,)),
    Property(
        "two dtypes", _cases("two dtypes", drawn(dtypes=(torch.float64, torch.float32)), (2,), 8), the_means, (VALUES,)
    ),
)
OVERLAP = (
    Property(VALUES, STRAIGHT, the_sums),
    Property("begins in the backward", STRAIGHT, begun, (VALUES,)),
    Property("waits for nothing in the backward", STRAIGHT, not_waited, ("begins in the backward",)),
    Property(
        "gradients that add up",
        _cases("a gradient was there already", layers(lambda rank, n: tuple(range(n)), before=8.0), (2,), 4),
        the_sums,
        (VALUES,),
    ),
    Property(
        "any order",
        _cases(
            "each rank uses its layers in another order", layers(lambda r, n: tuple(range(n))[:: 1 - 2 * r]), (2,), 4
        ),
        the_sums,
        (VALUES,),
    ),
)

EXERCISES = (
    Exercise(
        "21.average", "average_gradients(model, comm, bucket_bytes)", AVERAGE, (*FULL, AVERAGE[4].cases[0]), averaged
    ),
    Exercise("21.overlap", "overlap(model, comm)", OVERLAP, (), overlapped),
    Exercise("21.pick", "pick(elements, backward_s, p, wire)", replicas_pick.PROPERTIES, (), fastest.asked),
)
