"""Lab 00's decision: what a late rank costs, as a number, and what to mend first, from a list.

what_to_mend(p, late_s, sum_s) -> (rank-seconds waited, REASONS[0] or REASONS[1]: what costs more of them)
"""

from __future__ import annotations

from math import isclose

import torch

from lt_core.base.units import told_apart
from lt_core.teaching.checks.exercise import Make, Property, Run
from lt_core.teaching.checks.fastest import Kind

REASONS = ("the late rank", "the sum")
Question = tuple[int, float, float]


def truth(question: Question) -> tuple[float, str]:
    """The right answer: p - 1 ranks wait, and all p are in the sum."""
    p, late_s, sum_s = question
    waited_s = (p - 1) * late_s
    return waited_s, REASONS[waited_s < p * sum_s]


def words(question: Question) -> str:
    """Ranks, and both times."""
    p, late_s, sum_s = question
    return f"{p:,} ranks, one {late_s:,.4g} s late, a sum of {sum_s:.4g} s"


def is_a_pair(run: Run) -> str:
    """A judge: a number and one of the reasons come back."""
    value = run.values()[0]
    if isinstance(value, tuple | list) and len(value) == 2:
        number, reason = value
        if isinstance(number, int | float) and isinstance(reason, str) and reason in REASONS:
            return ""
    wanted = f"(rank-seconds, {' or '.join(repr(one) for one in REASONS)})"
    return f"it returned {value!r:.60}; {wanted} is wanted"


def is_waited(run: Run) -> str:
    """A judge: the rank-seconds are those that all wait together."""
    (number, _), (right, _) = run.values()[0], truth(run.given[0])
    if isclose(number, right, rel_tol=1e-6):
        return ""
    mine, lost = told_apart(number, right)
    return f"{words(run.given[0])}: you say {mine} rank-seconds of waiting, {lost} are lost"


def is_the_reason(run: Run) -> str:
    """A judge: what was named costs more rank-seconds than the other."""
    (_, reason), (_, right) = run.values()[0], truth(run.given[0])
    return "" if reason == right else f"{words(run.given[0])}: you would mend {reason}; {right} costs more rank-seconds"


def asked(ranks: tuple[int, ...], least: float, most: float) -> Make:
    """A question on some of these ranks, where waiting costs `least` to `most` times what the sum costs."""

    def made(random: torch.Generator, size: int, elements: int) -> list[Question]:
        p = ranks[int(torch.randint(len(ranks), (), generator=random))]
        first, second = torch.rand(2, generator=random, dtype=torch.float64).tolist()
        sum_s, times = 0.1 + first, least + (most - least) * second
        return [(p, times * p * sum_s / (p - 1), sum_s)] * size

    return made


MANY, PAIR, REASON = (3, 4, 8, 1000), "a number and a reason", "what costs more"
LATE, SLOW = Kind(REASON, asked(MANY, 3, 9)), Kind(REASON, asked(MANY, 0.1, 0.3))
CLOSE = Kind(REASON, asked((4, 8, 1000), 1.2, 2))  # late by fewer seconds than all spend in the sum together
TWO = Kind("two ranks", asked((2,), 0.6, 0.9))  # late by more seconds than the sum takes, and yet the sum costs more
PROPERTIES = (
    Property(PAIR, LATE.cases()[:1], is_a_pair),
    Property("rank-seconds", LATE.cases(), is_waited, (PAIR,)),
    Property(REASON, (*LATE.cases(), *SLOW.cases(), *CLOSE.cases()), is_the_reason, (PAIR,)),
    Property(TWO.name, TWO.cases(), is_the_reason, (REASON,)),
)
