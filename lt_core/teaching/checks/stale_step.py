"""What is asked of a step size: the weight comes to rest, and not in ten times the steps it would need."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from lt_core.data_parallel.parameter_server import law_stable_step
from lt_core.teaching.checks.exercise import Make, Run

TIMID = 4  # a step this many times smaller than it could be wastes the ranks


def sizes(workers: Sequence[int], curvatures: Sequence[float]) -> Make:
    """(workers, curvature) each."""
    return lambda random, size, elements: [[(n, c) for n in workers for c in curvatures]]


def numbers(fn: Callable[..., Any], comm: object, given: Sequence[tuple[int, float]]) -> list[Any]:
    """The learner's steps."""
    return [fn(n, c) for n, c in given]


def is_number(run: Run) -> str:
    """A judge: numbers above 0."""
    for (n, c), step in zip(run.given[0], run.values()[0]):
        if isinstance(step, bool) or not isinstance(step, int | float) or not 0 < step < math.inf:
            return f"{n} workers, curvature {c:g}: it returned {step!r:.40}; a number above 0 is wanted"
    return ""


def grows(step: float, tau: int, curvature: float) -> bool:
    """Whether w <- w - step * curvature * (w, tau updates ago) is larger in the end than where it began."""
    path = [1.0] * (tau + 1)
    for _ in range(300 * (tau + 1)):
        path.append(path[-1] - step * curvature * path[-1 - tau])
        if abs(path[-1]) > 1e6:
            return True
    return max(map(abs, path[-4 * (tau + 1) :])) > 1.0


def is_stable(run: Run) -> str:
    """A judge: the weight comes to rest."""
    for (n, c), step in zip(run.given[0], run.values()[0]):
        if grows(step, n - 1, c):
            return f"{n} workers, curvature {c:g}: with a step of {step:.3g} the weight grows without end"
    return ""


def is_bold(run: Run) -> str:
    """A judge: not many times smaller than it could be."""
    for (n, c), step in zip(run.given[0], run.values()[0]):
        if step * TIMID < law_stable_step(n - 1, c):
            times = law_stable_step(n - 1, c) / step
            return f"{n} workers, curvature {c:g}: {step:.3g} is stable, and {times:.0f} times less than could be"
    return ""
