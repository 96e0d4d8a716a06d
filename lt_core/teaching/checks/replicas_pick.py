"""Lab 21's choice: the bucket for a wire, by the law of an overlapped step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from lt_core.base.cluster import Wire
from lt_core.collectives import ring
from lt_core.data_parallel.replicate import overlapped
from lt_core.data_parallel.replicate.buckets import bucket_elements
from lt_core.teaching.checks.exercise import Make
from lt_core.teaching.checks.fastest import Fastest, Kind

CHOICES = (40_000, 400_000, 4_000_000)


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


def words(question: Question) -> str:
    """Ranks and wire."""
    return f"{question.p} ranks, {question.wire}"


def asked(ranks: Sequence[int], latency_s: float, bytes_per_s: float, backward_s: float) -> Make:
    """100 blocks of 10,000 floats, on some of these ranks and such a wire, each number drawn around what is given."""

    def made(random: torch.Generator, size: int, _: int) -> list[Question]:
        some = (0.8 + 0.4 * torch.rand(3, generator=random, dtype=torch.float64)).tolist()
        wire = Wire("drawn", latency_s * some[0], bytes_per_s * some[1])
        p = ranks[int(torch.randint(len(ranks), (), generator=random))]
        return [Question([10_000] * 100, backward_s * some[2], p, wire)] * size

    return made


CHOICE = Fastest(CHOICES, seconds, words)
KINDS = (
    Kind("a wire that answers late", asked((2, 4, 8), 20e-3, 1e9, 0.02)),
    Kind("a wire that answers at once", asked((2, 4, 8), 1e-7, 1e8, 0.1)),
    Kind("a wire in between", asked((3, 4, 5), 5e-4, 1.25e8, 0.1)),
)
PROPERTIES = CHOICE.properties("one of the choices", KINDS)
