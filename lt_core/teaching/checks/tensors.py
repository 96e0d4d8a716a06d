"""What exercises with tensors have in common: what ranks are handed, and properties that any collective has.

Values differ by rank and position, and are whole numbers, so that every order of summing gives the same bits: only
`floats` shows an order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from lt_core.base.units import told_apart
from lt_core.teaching.checks import place
from lt_core.teaching.checks.exercise import Case, Make, Property, Run
from lt_core.teaching.same import bits, same_bits

ITEM_BYTES = 8  # all cases are in double precision


def integers(random: torch.Generator, size: int, elements: int) -> list[Tensor]:
    """x of each rank: (elements,), no number twice."""
    values = torch.randperm(9999, generator=random)[: size * elements] + 1
    return list(values.double().view(size, elements))


def floats(random: torch.Generator, size: int, elements: int) -> list[Tensor]:
    """x of each rank: (elements,), of so different sizes that the last bits of a sum show its order."""
    powers = torch.randint(-3, 4, (size, elements), generator=random)
    return list((torch.rand(size, elements, generator=random, dtype=torch.float64) - 0.5) * 10.0**powers)


def strided(make: Make) -> Make:
    """The same x, each as every second element of a longer tensor."""

    def made(random: torch.Generator, size: int, elements: int) -> list[Tensor]:
        return [torch.stack([x, torch.full_like(x, -1e6)], dim=1).view(-1)[::2] for x in make(random, size, elements)]

    return made


def total(given: Sequence[Tensor]) -> Tensor:
    """The sum, added up from rank 0 on."""
    result = given[0].clone()
    for x in given[1:]:
        result += x
    return result


def shown(x: Tensor) -> str:
    """The first elements: `[3, 18, 7, ...]`."""
    first = [f"{v:g}" for v in x.reshape(-1)[:4].tolist()]
    return f"[{', '.join(first)}{', ...' if x.numel() > 4 else ''}]"


def returns_tensor(cases: Sequence[Case]) -> Property:
    """A tensor of the input's shape and dtype comes back, on every rank."""
    return Property("returns a tensor like its input", tuple(cases), no_tensor)


def no_tensor(run: Run) -> str:
    """Which rank did not return a tensor like the one it was handed; "" where all did."""
    for r, (value, x) in enumerate(zip(run.values(), run.given, strict=True)):
        wanted, at = _kind(x), place.words(run.outcomes[r].begins)
        if value is None:
            got = "None (is `return` missing?)"
        else:
            got = _kind(value) if isinstance(value, Tensor) else f"{type(value).__name__} {value!r:.40}"
        if got != wanted:
            return f"{run.case}: rank {r} returned {got}; {wanted} is wanted{f' ({at})' if at else ''}"
    return ""


def equals(right: Callable[[Sequence[Any]], Tensor]) -> Callable[[Run], str]:
    """A judge: every rank holds `right` of what all were handed, to the bit."""

    def judge(run: Run) -> str:
        wanted = right(run.given)
        for r, value in enumerate(run.values()):
            if not torch.equal(value, wanted):
                at = int((value != wanted).nonzero()[0])
                held, right_one = told_apart(value[at].item(), wanted[at].item())
                return f"{run.case}: rank {r} holds {held} in place {at}, {right_one} is right"
        return ""

    return judge


def same_on_every_rank(cases: Sequence[Case], *after: str) -> Property:
    """All ranks hold the same bits."""

    def judge(run: Run) -> str:
        if wrong := no_tensor(run):
            return wrong
        first, *others = run.values()
        for r, value in enumerate(others, 1):
            if not same_bits(first, value):
                at = int((bits(first) != bits(value)).nonzero()[0]) // ITEM_BYTES
                gap = abs(float(first[at] - value[at]))
                return f"{run.case}: ranks 0 and {r} differ by {gap:.1g} in place {at}; add up once, then copy"
        return ""

    return Property("same bits on every rank", tuple(cases), judge, after)


def untouched(cases: Sequence[Case], *after: str) -> Property:
    """What the caller handed over is as it was."""

    def judge(run: Run) -> str:
        changed = [r for r, o in enumerate(run.outcomes) if o.changed]
        said = "what rank {} was handed is another afterwards; work on a copy"
        return f"{run.case}: {said.format(changed[0])}" if changed else ""

    return Property("input untouched", tuple(cases), judge, after)


def _kind(x: Tensor) -> str:
    kind = f"{str(x.dtype).removeprefix('torch.')} {tuple(x.shape)}"
    return kind if x.layout is torch.strided and not x.is_meta else f"{kind}, {x.layout} on {x.device}"
