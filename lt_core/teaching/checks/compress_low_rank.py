"""What is asked of PowerSGD: low_rank_mean(comm, m, rank, memory) gives the mean of all ranks' m, by two factors.

Of a mean of that rank nothing is lost, whatever each rank brings: what is a rank's own adds up to zero. Of any other
mean the best that two factors can keep is known, and kept factors come to it within a few steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lt_core.comm.comm import Comm
from lt_core.teaching.checks.exercise import Case, Exercise, Make, Property, Run
from lt_core.teaching.checks.tensors import ITEM_BYTES
from lt_core.teaching.same import same_bits

ROWS, COLUMNS, RANK, NEAR = 24, 32, 2, 1.02
LIKE, ALIKE, EXACT = "returns a matrix like m", "same bits on every rank", "nothing is lost of a mean of rank 2"


class Step(NamedTuple):
    """What one call returned, and whether what it was handed is another afterwards."""

    value: Any
    changed: bool


def drawn(random: torch.Generator, size: int, sizes: Sequence[float]) -> list[Tensor]:
    """A matrix a rank, whose mean has these singular values; what is a rank's own is as large."""
    count = len(sizes)
    left, right = (
        torch.linalg.qr(torch.randn(n, count, generator=random, dtype=torch.float64)).Q for n in (ROWS, COLUMNS)
    )
    mean = left * torch.tensor(sizes, dtype=torch.float64) @ right.T
    own = torch.randn(size, ROWS, COLUMNS, generator=random, dtype=torch.float64)
    return list(mean + own - own.mean(0))


def steps(count: int, sizes: Sequence[float]) -> Make:
    """`count` steps with the same matrices."""
    return lambda random, size, elements: [[m] * count for m in drawn(random, size, sizes)]


def nothing(random: torch.Generator, size: int, elements: int) -> list[list[Tensor]]:
    """Zeros, twice."""
    return [[torch.zeros(ROWS, COLUMNS, dtype=torch.float64)] * 2 for _ in range(size)]


def play(fn: Callable[..., Any], comm: Comm, walk: Sequence[Tensor]) -> list[Step]:
    """All steps, one after the other, with one memory."""
    memory: dict[Any, Any] = {}
    played = []
    for m in walk:
        mine = m.to(comm.device, copy=True)
        value = fn(comm, mine, RANK, memory)
        kept = value.detach().cpu().clone() if isinstance(value, Tensor) else value
        played.append(Step(kept, not torch.equal(mine.cpu(), m)))
    return played


def is_matrix(run: Run) -> str:
    """A judge: a matrix like m comes back, on every rank and in every step."""
    for r, played in enumerate(run.values()):
        for k, (value, _) in enumerate(played):
            if value is None:
                return f"{run.case}: rank {r} returned None in step {k} (is `return` missing?)"
            if not isinstance(value, Tensor) or value.shape != (ROWS, COLUMNS):
                got = f"a tensor {tuple(value.shape)}" if isinstance(value, Tensor) else f"{type(value).__name__}"
                return f"{run.case}: rank {r} returned {got} in step {k}; ({ROWS}, {COLUMNS}) is wanted"
    return ""


def is_alike(run: Run) -> str:
    """A judge: all ranks hold the same."""
    first, *others = [played[-1].value for played in run.values()]
    apart = [r for r, value in enumerate(others, 1) if not same_bits(first, value)]
    if not apart:
        return ""
    gap = float((first - others[apart[0] - 1]).norm() / first.norm())
    return f"{run.case}: ranks 0 and {apart[0]} differ by {gap:.0%}; both factors are sums over ranks"


def is_exact(run: Run) -> str:
    """A judge: the last step gives the mean, to rounding."""
    error, mean = errors(run)[-1], mean_of(run)
    if error <= 1e-9:
        return ""
    value = run.values()[0][-1].value
    times = float((value * mean).sum() / mean.square().sum())
    if float((value - times * mean).norm() / mean.norm()) <= 1e-9:
        return f"{run.case}: it is {times:.3g} times the mean"
    return f"{run.case}: it misses {error:.1%} of a mean that two factors can hold whole"


def comes_near(run: Run) -> str:
    """A judge: after the last step the error is the least that such factors can have."""
    error, values = errors(run)[-1], torch.linalg.svdvals(mean_of(run))
    least = float(values[RANK:].norm() / values.norm())
    if error <= NEAR * least:
        return ""
    return (
        f"{run.case}: step {len(run.given[0]) - 1} still errs by {error:.1%}, {least:.1%} can be; begin with the last q"
    )


def is_zero(run: Run) -> str:
    """A judge: of nothing comes nothing."""
    for played in run.values():
        if wrong := [k for k, (value, _) in enumerate(played) if value.count_nonzero()]:
            return f"{run.case}: step {wrong[0]} gives {played[wrong[0]].value[0, 0]:g}, 0 is right"
    return ""


def is_thin(run: Run) -> str:
    """A judge: no more leaves a rank than its factors to each other rank, in each step."""
    most = len(run.given[0]) * (run.case.size - 1) * RANK * (ROWS + COLUMNS) * ITEM_BYTES
    for r, o in enumerate(run.outcomes):
        if o.traffic.bytes > most:
            return f"{run.case}: rank {r} sent {o.traffic.bytes:,} bytes; both factors to each other rank are {most:,}"
    return ""


def leaves(run: Run) -> str:
    """A judge: m is as it was."""
    for r, played in enumerate(run.values()):
        if any(step.changed for step in played):
            return f"{run.case}: rank {r}'s m is another afterwards; it is the caller's gradient"
    return ""


def errors(run: Run) -> list[float]:
    """How far rank 0 is from the mean, as a part of it, step by step."""
    mean = mean_of(run)
    return [float((step.value - mean).norm() / mean.norm()) for step in run.values()[0]]


def mean_of(run: Run) -> Tensor:
    """The mean of all ranks' matrices."""
    return torch.stack([walk[0] for walk in run.given]).mean(0)


THIN, FULL = (9.0, 4.0), (9.0, 8.0, 4.0, *(3.5,) * 9)
LATER = tuple(Case(p, 1, steps(3, THIN), f"step 3 of {p} ranks") for p in (2, 3, 4))
FIRST = tuple(Case(p, 1, steps(1, THIN), f"step 1 of {p} ranks") for p in (2, 3, 4))

EXERCISE = Exercise(
    "32.power_sgd",
    "low_rank_mean(comm, m, rank, memory)",
    (
        Property(LIKE, LATER, is_matrix),
        Property(ALIKE, LATER, is_alike, (LIKE,)),
        Property(EXACT, LATER, is_exact, (ALIKE,)),
        Property("from the first step on", FIRST, is_exact, (EXACT,)),
        Property("better from step to step", (Case(2, 1, steps(12, FULL), "a mean of rank 12"),), comes_near, (EXACT,)),
        Property("zeros stay zeros", (Case(2, 1, nothing, "a matrix of zeros"),), is_zero, (LIKE,)),
        Property("two thin sums", LATER, is_thin, (LIKE,)),
        Property("m untouched", LATER, leaves, (LIKE,)),
    ),
    (LATER[-1],),
    play,
)
