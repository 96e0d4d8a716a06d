"""What is asked of a round that does not wait: the late gradient is in it once, and the late rank has it too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lt_core.teaching.checks.exercise import Make, Run
from lt_core.teaching.checks.tensors import shown


class Round(NamedTuple):
    """What a round is handed."""

    weights: list[Tensor]
    came: dict[int, Tensor]
    late: dict[int, Tensor]


def round_of(came: int, late: bool) -> Make:
    """Four ranks whose weights are alike; `came` of them in time, and perhaps one gradient of the round before."""

    def made(random: torch.Generator, size: int, elements: int) -> list[Round]:
        ranks = torch.randperm(4, generator=random).tolist()
        numbers = torch.randperm(9999, generator=random)[: 9 * elements].double().view(9, elements)
        weights = [numbers[8].clone() for _ in range(4)]
        old = {ranks[0]: numbers[ranks[0] + 4]} if late else {}
        return [Round(weights, {r: numbers[r] for r in sorted(ranks[:came])}, old)]

    return made


def play(fn: Callable[..., Any], comm: object, given: Round) -> list[Any]:
    """The weights afterwards, and whether what was handed over is another."""
    came, late = ({r: g.clone() for r, g in which.items()} for which in (given.came, given.late))
    result = fn([w.clone() for w in given.weights], came, late)
    changed = any(not torch.equal(a[r], b[r]) for a, b in ((came, given.came), (late, given.late)) for r in b)
    return [result, changed]


def gives_weights(run: Run) -> str:
    """A judge: a tensor a rank."""
    result, shape = run.values()[0][0], run.given[0].weights[0].shape
    fine = isinstance(result, list | tuple) and len(result) == 4
    if fine and all(isinstance(w, Tensor) and w.shape == shape for w in result):
        return ""
    return f"{run.case}: it returned {type(result).__name__}; a list of 4 tensors is wanted, every rank's weights"


def whole_of(given: Round) -> Tensor:
    """The sum of all gradients that belong to the round."""
    return torch.stack([*given.came.values(), *given.late.values()]).sum(0)


def each_once(run: Run) -> str:
    """A judge: who came in time moved along the sum of all gradients, whatever the length of its step."""
    given, result = run.given[0], run.values()[0][0]
    rank = next(iter(given.came))
    moved, whole = given.weights[rank] - result[rank], whole_of(given)
    if torch.allclose(moved / moved.norm(), whole / whole.norm(), atol=1e-9):
        return ""
    return f"{run.case}: rank {rank} moved by {shown(moved)}, which is no multiple of the sum {shown(whole)}"


def by_all(run: Run) -> str:
    """A judge: the step is the sum over N."""
    given, result = run.given[0], run.values()[0][0]
    rank = next(iter(given.came))
    moved, wanted = given.weights[rank] - result[rank], whole_of(given) / 4
    if torch.allclose(moved, wanted, rtol=1e-9):
        return ""
    return f"{run.case}: rank {rank} moved by {shown(moved)}; the sum over 4 ranks is {shown(wanted)}"


def all_alike(run: Run) -> str:
    """A judge: who was late has the same weights."""
    given, result = run.given[0], run.values()[0][0]
    first = next(iter(given.came))
    apart = [r for r in range(4) if not torch.equal(result[r], result[first])]
    return f"{run.case}: rank {apart[0]} did not come in time and missed the update of rank {first}" if apart else ""


def leaves_gradients(run: Run) -> str:
    """A judge: gradients are as they were."""
    return f"{run.case}: a gradient is another afterwards; add into a new tensor" if run.values()[0][1] else ""
