"""Lab 21's choice: the bucket for a wire, by the law of an overlapped step.

Right is whatever takes at most 2 % longer than the fastest of CHOICES.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from lt_core.base.cluster import Wire
from lt_core.base.units import bytes_text, seconds_text
from lt_core.collectives import ring
from lt_core.comm.comm import Comm
from lt_core.data_parallel.replicate import overlapped
from lt_core.data_parallel.replicate.buckets import bucket_elements
from lt_core.teaching.checks.exercise import Case, Make, Property, Run

CHOICES = (40_000, 400_000, 4_000_000)
NEAR = 1.02


class Question(NamedTuple):
    """Equal blocks of `elements` floats, seconds of the whole backward, ranks, the wire."""

    elements: Sequence[int]
    backward_s: float
    p: int
    wire: Wire


def seconds(nbytes: int, question: Question) -> float:
    """How long the backward and what follows it take by law, with buckets of so many bytes."""
    sizes = bucket_elements(question.elements, 4, nbytes)
    whole = sum(sizes)
    backward_s = [question.backward_s * n / whole for n in sizes]
    return overlapped.law_seconds(0, backward_s, [ring.law_seconds(question.p, 4 * n, question.wire) for n in sizes])


def asked(latency_s: float, bytes_per_s: float, backward_s: float) -> Make:
    """100 blocks of 10,000 floats, on such a wire, each number drawn around what is given."""

    def made(random: torch.Generator, size: int, _: int) -> list[Question]:
        some = (0.8 + 0.4 * torch.rand(3, generator=random, dtype=torch.float64)).tolist()
        wire = Wire("drawn", latency_s * some[0], bytes_per_s * some[1])
        p = (2, 4, 8)[int(torch.randint(3, (), generator=random))]
        return [Question([10_000] * 100, backward_s * some[2], p, wire)] * size

    return made


def a_choice(run: Run) -> str:
    """A judge: one of the choices came back."""
    value = run.values()[0]
    return "" if value in CHOICES else f"{run.case}: it returned {value!r:.40}; one of {list(CHOICES)} is wanted"


def the_fastest(run: Run) -> str:
    """A judge: nothing is more than 2 % faster."""
    if wrong := a_choice(run):
        return wrong
    mine, question = run.values()[0], run.given[0]
    best = min(CHOICES, key=lambda nbytes: seconds(nbytes, question))
    if seconds(mine, question) <= NEAR * seconds(best, question):
        return ""
    told = [f"{bytes_text(n)} take {seconds_text(seconds(n, question))}" for n in (mine, best)]
    return f"{run.case}: {question.p} ranks, {question.wire}: {told[0]}; {told[1]}"


def _cases(what: str, make: Make) -> tuple[Case, ...]:
    return tuple(Case(1, k + 1, make, what) for k in range(6))


SLOW, QUICK = "a wire that answers late", "a wire that answers at once"
BETWEEN = "a wire in between"
KINDS = (
    (SLOW, asked(20e-3, 1e9, 0.02)),
    (QUICK, asked(1e-7, 1e8, 0.1)),
    (BETWEEN, asked(5e-4, 1.25e8, 0.1)),
)
ONE = "one of the choices"
PROPERTIES = (
    Property(ONE, _cases("a question", KINDS[0][1])[:1], a_choice),
    *(Property(name, _cases(name, make), the_fastest, (ONE,)) for name, make in KINDS),
)


def called(fn: Any, comm: Comm, question: Question) -> Any:
    """The learner's answer."""
    return fn(*question)
