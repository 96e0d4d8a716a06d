"""Wrong answers to lab 22, each with the thought behind it and the property that refuses it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from lt_core.teaching.checks.exercise import Answer
from lt_core.teaching.checks.stale_answers import eager_round, may_start, step_for

Gradients = Mapping[int, Tensor]


def less_than(clocks: list[int], rank: int, slack: float) -> bool:
    """`<` for `<=`."""
    return clocks[rank] - min(clocks) < slack


def from_the_fastest(clocks: list[int], rank: int, slack: float) -> bool:
    """How far behind the fastest."""
    return max(clocks) - clocks[rank] <= slack


def slowest_waits(clocks: list[int], rank: int, slack: float) -> bool:
    """Somebody has to wait."""
    return 0 < clocks[rank] - min(clocks) <= slack


def one_more(clocks: list[int], rank: int, slack: float) -> bool:
    """Counts the clock that it is about to start."""
    return clocks[rank] - min(clocks) <= slack + 1


def as_a_number(clocks: list[int], rank: int, slack: float) -> int:
    """1 and 0."""
    return int(may_start(clocks, rank, slack))


def always_the_first(clocks: list[int], rank: int, slack: float) -> bool:
    """Looks at rank 0's clock."""
    return may_start(clocks, 0, slack)


def counted(clocks: list[int], rank: int, slack: float) -> bool:
    """A slack is a whole number."""
    return clocks[rank] - min(clocks) in range(int(slack) + 1)


def sorts(clocks: list[int], rank: int, slack: float) -> bool:
    """The least is the first once they are sorted."""
    mine = clocks[rank]
    clocks.sort()
    return mine - clocks[0] <= slack


def nine_at_most(clocks: list[int], rank: int, slack: float) -> bool:
    """Nobody needs more."""
    return may_start(clocks, rank, min(slack, 9))


def one_for_all(weights: list[Tensor], came: Gradients, late: Gradients) -> Tensor:
    """They are alike, so one is enough."""
    return eager_round(weights, came, late)[0]


def stacks_the_late(weights: list[Tensor], came: Gradients, late: Gradients) -> list[Tensor]:
    """There is always a late one."""
    total = torch.stack(list(came.values())).sum(0) + torch.stack(list(late.values())).sum(0)
    return [w - total / len(weights) for w in weights]


def drops(weights: list[Tensor], came: Gradients, late: Gradients) -> list[Tensor]:
    """Too late is too late."""
    return eager_round(weights, came, {})


def twice(weights: list[Tensor], came: Gradients, late: Gradients) -> list[Tensor]:
    """To make up for the wait."""
    return eager_round(weights, came, {r: 2 * g for r, g in late.items()})


def by_those_who_came(weights: list[Tensor], came: Gradients, late: Gradients) -> list[Tensor]:
    """The mean of what there is."""
    moved = eager_round(weights, came, late)
    return [w - (w - new) * len(weights) / len(came) for w, new in zip(weights, moved)]


def only_who_came(weights: list[Tensor], came: Gradients, late: Gradients) -> list[Tensor]:
    """Who is not there is not updated."""
    moved = eager_round(weights, came, late)
    return [moved[r] if r in came else w for r, w in enumerate(weights)]


def into_the_first(weights: list[Tensor], came: Gradients, late: Gradients) -> list[Tensor]:
    """Adds into a gradient."""
    first, *others = [*came.values(), *late.values()]
    for gradient in others:
        first += gradient
    return [w - first / len(weights) for w in weights]


def a_range(workers: int, curvature: float) -> tuple[float, float]:
    """From where to where."""
    return 0.0, step_for(workers, curvature)


def scaled_up(workers: int, curvature: float) -> float:
    """N workers, N times the batch, N times the step."""
    return 0.4 * workers / curvature


def as_before(workers: int, curvature: float) -> float:
    """What was right for two."""
    return 0.5 / curvature


def timid(workers: int, curvature: float) -> float:
    """Small is safe."""
    return 0.01 / (workers * curvature)


def flat(workers: int, curvature: float) -> float:
    """One over N."""
    return 1 / workers


WRONG: dict[str, tuple[Answer, ...]] = {
    "22.may_start": (
        Answer("W1", "`<` for `<=`", less_than, "exactly s ahead may start", alone=True),
        Answer("W2", "compares with the fastest", from_the_fastest, "further ahead must wait"),
        Answer("W3", "blocks the slowest", slowest_waits, "the slowest may start", alone=True),
        Answer("W9", "one clock more", one_more, "further ahead must wait", alone=True),
        Answer("W10", "1 and 0", as_a_number, "True or False", alone=True),
        Answer("W11", "rank 0's clock", always_the_first, "whoever asks", alone=True),
        Answer("W12", "a slack is a whole number", counted, "s = inf", alone=True),
        Answer("W13", "sorts the caller's list", sorts, "clocks untouched", alone=True),
        Answer("W14", "nine at most", nine_at_most, "the four tables", alone=True),
    ),
    "22.eager_round": (
        Answer("W4", "drops the late", drops, "each gradient once", alone=True),
        Answer("W5", "applies it twice", twice, "each gradient once", alone=True),
        Answer("W6", "divides by those who came", by_those_who_came, "divided by all N", alone=True),
        Answer("W7", "the late rank's weights stay", only_who_came, "the late rank too", alone=True),
        Answer("W15", "one tensor for all", one_for_all, "weights of every rank", alone=True),
        Answer("W16", "there is always a late one", stacks_the_late, "all in time: synchronous", alone=True),
        Answer("W17", "adds into a gradient", into_the_first, "gradients untouched", alone=True),
    ),
    "22.step_for": (
        Answer("W8", "linear scaling up", scaled_up, "stable", alone=True),
        Answer("W18", "what was right for two", as_before, "stable", alone=True),
        Answer("W19", "small is safe", timid, "not timid", alone=True),
        Answer("W20", "forgets the curvature", flat, "whatever the curvature", alone=True),
        Answer("W21", "a range", a_range, "a number above 0", alone=True),
    ),
}
