"""Lab 20: which all-reduce for so many ranks, bytes and such a wire.

choose(p, n, wire) -> name          "ring", "recursive doubling" or "halving-doubling": the fastest by law
"""

from __future__ import annotations

import torch

from lt_core.base.cluster import Wire
from lt_core.base.units import bytes_text
from lt_core.collectives import doubling, halving, ring
from lt_core.collectives.choose import Algorithm
from lt_core.teaching.checks import fastest
from lt_core.teaching.checks.exercise import Exercise, Make
from lt_core.teaching.checks.fastest import Fastest, Kind

THREE: dict[str, Algorithm] = {"ring": ring, "recursive doubling": doubling, "halving-doubling": halving}
POWERS, OTHERS = (2, 4, 8, 16, 64), (3, 5, 6, 7, 12, 48)
Question = tuple[int, int, Wire]


def seconds(name: str, question: Question) -> float:
    """How long one of the three takes by law."""
    p, n, wire = question
    return THREE[name].law_seconds(p, n, wire)


def words(question: Question) -> str:
    """Ranks, bytes, wire."""
    p, n, wire = question
    return f"{p} ranks, {bytes_text(n)}, {wire}"


def asked(ranks: tuple[int, ...], least: int, most: int, wires: bool = False) -> Make:
    """A question: some of these ranks, 10**least to 10**most bytes, the office's wire or any."""

    def made(random: torch.Generator, size: int, elements: int) -> list[Question]:
        p = ranks[int(torch.randint(len(ranks), (), generator=random))]
        first, second, third = torch.rand(3, generator=random, dtype=torch.float64).tolist()
        n = round(10 ** (least + (most - least) * first))
        wire = Wire("drawn", 10 ** (-6 + 3 * second), 10 ** (7 + 3 * third)) if wires else Wire("office", 1e-4, 1.25e8)
        return [(p, n, wire)] * size

    return made


CHOICE = Fastest(tuple(THREE), seconds, words)
KINDS = (
    Kind("small tensors", asked(POWERS[1:], 2, 3)),
    Kind("large tensors", asked(POWERS[1:], 8, 9)),
    Kind("no power of two", asked(OTHERS, 3, 8), ("small tensors", "large tensors"), 16),
    Kind("any wire", asked(POWERS + OTHERS, 3, 6, wires=True), ("no power of two",), 40),
)

EXERCISES = (
    Exercise("20.choose", "choose(p, n, wire)", CHOICE.properties("one of the three", KINDS), (), fastest.asked),
)
