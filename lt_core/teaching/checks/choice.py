"""Lab 20: which all-reduce for so many ranks, bytes and such a wire.

    choose(p, n, wire) -> name          "ring", "recursive doubling" or "halving-doubling": the fastest by law

Right is whatever takes at most 1 % longer than the fastest: nobody decides by less.
"""

from __future__ import annotations

from typing import Any

import torch

from lt_core.base.cluster import Wire
from lt_core.base.units import bytes_text, seconds_text
from lt_core.collectives import doubling, halving, ring
from lt_core.collectives.choose import Algorithm
from lt_core.comm.comm import Comm
from lt_core.teaching.checks.exercise import Case, Exercise, Make, Property, Run

THREE: dict[str, Algorithm] = {"ring": ring, "recursive doubling": doubling, "halving-doubling": halving}
NEAR = 1.01
POWERS, OTHERS = (2, 4, 8, 16, 64), (3, 5, 6, 7, 12, 48)
Question = tuple[int, int, Wire]


def seconds(name: str, question: Question) -> float:
    """How long one of the three takes by law."""
    p, n, wire = question
    return THREE[name].law_seconds(p, n, wire)


def fastest(question: Question) -> str:
    """The right answer."""
    return min(THREE, key=lambda name: seconds(name, question))


def asked(ranks: tuple[int, ...], least: int, most: int, wires: bool = False) -> Make:
    """A question: some of these ranks, 10**least to 10**most bytes, the office's wire or any."""

    def made(random: torch.Generator, size: int, elements: int) -> list[Question]:
        p = ranks[int(torch.randint(len(ranks), (), generator=random))]
        first, second, third = torch.rand(3, generator=random, dtype=torch.float64).tolist()
        n = round(10 ** (least + (most - least) * first))
        wire = Wire("drawn", 10 ** (-6 + 3 * second), 10 ** (7 + 3 * third)) if wires else Wire("office", 1e-4, 1.25e8)
        return [(p, n, wire)] * size

    return made


def a_name(run: Run) -> str:
    """A judge: one of the three came back."""
    value = run.values()[0]
    if isinstance(value, str) and value in THREE:
        return ""
    return f"{run.case}: it returned {value!r:.40}; one of {', '.join(map(repr, THREE))} is wanted"


def the_fastest(run: Run) -> str:
    """A judge: nothing is more than 1 % faster."""
    if wrong := a_name(run):
        return wrong
    name, question = run.values()[0], run.given[0]
    best, (p, n, wire) = fastest(question), question
    if seconds(name, question) <= NEAR * seconds(best, question):
        return ""
    place = f"{p} ranks, {bytes_text(n)}, {wire}"
    told = [f"{one} {seconds_text(seconds(one, question))}" for one in (name, best)]
    return f"{run.case}: {place}: you say {told[0]}; {told[1]}"


def _cases(what: str, make: Make, questions: int = 8) -> tuple[Case, ...]:
    return tuple(Case(1, k + 1, make, what) for k in range(questions))  # elements: so that no two draw the same


NAMED = "one of the three"
KINDS = (
    ("small tensors", _cases("a small tensor", asked(POWERS[1:], 2, 3)), (NAMED,)),
    ("large tensors", _cases("a large tensor", asked(POWERS[1:], 8, 9)), (NAMED,)),
    (
        "no power of two",
        _cases("ranks that are no power of two", asked(OTHERS, 3, 8), 16),
        ("small tensors", "large tensors"),
    ),
    ("any wire", _cases("another wire", asked(POWERS + OTHERS, 3, 6, wires=True), 40), ("no power of two",)),
)


def _called(fn: Any, comm: Comm, question: Question) -> Any:
    return fn(*question)


EXERCISES = (
    Exercise(
        "20.choose",
        "choose(p, n, wire)",
        (
            Property(NAMED, KINDS[0][1][:1], a_name),
            *(Property(name, cases, the_fastest, after) for name, cases, after in KINDS),
        ),
        (),
        _called,
    ),
)
