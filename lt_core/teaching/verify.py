"""The equality badge: whether two sets of tensors are the same, and in which sense, in one line.

≡ SAME BITS: 420,480 parameters after 3 steps, 4 ranks
≈ SAME within 3e-16 (float64; sums in another order): ...
≠ DIFFERENT ON PURPOSE: stale by 3 updates; the law that does hold: applied = produced
✘ NOT THE SAME: rank 2: weight[3, 5] is 0.1 against 0.2                                 an error: it fails the cell
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from lt_core.base.errors import Shown
from lt_core.teaching.same import Difference, differences
from lt_core.teaching.sets import Tensors, evidence_of, pairs_of
from lt_core.teaching.shown import AlreadyShown, Chip, bad, good, near, row, say

WITHIN = {torch.float64: 1e-12, torch.float32: 1e-5}  # relative, where none is named; other types: the same bits


class Purpose(NamedTuple):
    """Why a difference is wanted, and the law that holds in place of equality; `met` says that it was seen to hold."""

    why: str
    law: str
    met: bool


@dataclass(frozen=True)
class Badge(AlreadyShown):
    """What `verify` found: sign and word, the evidence, and the largest difference relative to the largest number."""

    sign: str
    word: str
    evidence: str
    relative: float = field(default=0.0)

    def __str__(self) -> str:
        return f"{self.sign} {self.word}{': ' if self.evidence else ''}{self.evidence}"

    @property
    def chip(self) -> Chip:
        """How it looks."""
        return {"≡": good, "≈": near, "≠": near}.get(self.sign, bad)(self.sign, self.word)


class NotTheSame(Shown, AssertionError):
    """What should be the same is not; `badge` says where."""

    def __init__(self, badge: Badge) -> None:
        super().__init__(str(badge))
        self.badge = badge


def verify(
    ours: Tensors | Sequence[Tensors],
    plain: Tensors | Sequence[Tensors] | None = None,
    *,
    within: float | None = None,
    because: str = "",
    after: str = "",
    on_purpose: Purpose | None = None,
) -> Badge:
    """Show the badge of `ours` against `plain`, and return it: tensors, dicts of tensors, modules; a list is by rank.

    A list alone: all ranks against rank 0.  within: the relative difference that still is the same; without it 1e-12
    in float64, 1e-5 in float32, else none.  because, after: for the badge, "sums in another order", "3 steps".
    Errors: `NotTheSame`; `UserError` where there is nothing to compare.
    """
    pairs = pairs_of(ours, plain)
    found = [d._replace(where=f"{who}{d.where}") for who, a, b in pairs for d in differences(a, b)]
    badge = _badge(found, within, because, evidence_of(ours, after, len(pairs)), on_purpose)
    say(str(badge), row(badge.chip, badge.evidence))
    if badge.sign == "✘":
        raise NotTheSame(badge)
    return badge


def _badge(
    found: Sequence[Difference], within: float | None, because: str, evidence: str, on_purpose: Purpose | None
) -> Badge:
    if on_purpose and not on_purpose.met:
        return Badge("✘", "NOT THE SAME", f"{on_purpose.why}; and the law does not hold: {on_purpose.law}", math.inf)
    if not found:
        expected = ", though a difference was expected" if on_purpose else ""
        return Badge("≡", "SAME BITS", f"{evidence}{expected}")
    worst = max(found, key=lambda d: (d.broken, d.relative > limit(d, within), d.relative))
    if worst.broken:
        return Badge("✘", "NOT THE SAME", f"{worst.where}; {evidence}", worst.relative)
    if worst.relative <= limit(worst, within):
        kind = str(worst.dtype).removeprefix("torch.")
        word = f"SAME within {rounded_up(worst.relative)} ({'; '.join(filter(None, [kind, because]))})"
        return Badge("≈", word, evidence, worst.relative)
    if on_purpose:
        law = f"{on_purpose.why}; the law that does hold: {on_purpose.law}"
        return Badge("≠", "DIFFERENT ON PURPOSE", f"{law}; {evidence}", worst.relative)
    allowed = f"{limit(worst, within):.0e} is allowed" if limit(worst, within) else "only the same bits are allowed"
    return Badge(
        "✘", "NOT THE SAME", f"{worst.where}, {worst.relative:.1e} apart; {allowed}; {evidence}", worst.relative
    )


def limit(difference: Difference, within: float | None) -> float:
    """The relative difference that numbers of this type may have."""
    if not (difference.dtype.is_floating_point or difference.dtype.is_complex):
        return 0.0
    return WITHIN.get(difference.dtype, 0.0) if within is None else within


def rounded_up(value: float) -> str:
    """The next number of one digit, so that "within" is true: 2.1e-16 reads 3e-16."""
    if not value:
        return "0"
    power = math.floor(math.log10(value))
    digit = math.ceil(value / 10.0**power - 1e-9)
    return f"{digit * 10.0**power:.0e}".replace("e-0", "e-").replace("e+00", "")
