"""What is asked of a choice: pick(p, wire, seconds) names the fastest of three ways to send 420,480 gradients.

seconds: what each way computes beside the wire.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from lt_core.base.cluster import Wire
from lt_core.teaching.checks.exercise import Make
from lt_core.teaching.checks.fastest import Fastest, Kind

ELEMENTS, TOP, FACTORS = 420_480, 4_205, 24_064  # of pocket: all, 1 % of them, both factors of rank 2 and the vectors
Question = tuple[int, Wire, Mapping[str, float]]


def on_the_wire_s(name: str, p: int, wire: Wire) -> float:
    """Seconds of the messages: a ring, an all-gather of pairs, two rings."""
    share = 2 * (p - 1) / p
    rounds, nbytes = {
        "dense": (2 * (p - 1), share * 4 * ELEMENTS),
        "top-k": (p - 1, (p - 1) * 8 * TOP),
        "PowerSGD": (4 * (p - 1), share * 4 * FACTORS),
    }[name]
    return rounds * wire.latency_s + nbytes / wire.bytes_per_s


def whole_s(name: str, question: Question) -> float:
    """Those and the computing."""
    p, wire, seconds = question
    return on_the_wire_s(name, p, wire) + seconds[name]


def words(question: Question) -> str:
    """Ranks and wire."""
    p, wire, _ = question
    return f"{p} ranks, {wire}"


def asked(ranks: tuple[int, ...], bytes_per_s: tuple[float, ...], latency_s: float, own_s: float) -> Make:
    """A question: one of these ranks, of these wires; own_s: what a compressor computes."""

    def made(random: torch.Generator, size: int, elements: int) -> list[Question]:
        p = ranks[int(torch.randint(len(ranks), (), generator=random))]
        speed = bytes_per_s[int(torch.randint(len(bytes_per_s), (), generator=random))]
        seconds = {"dense": 0.0, "top-k": own_s, "PowerSGD": 1.2 * own_s}
        return [(p, Wire("drawn", latency_s, speed), seconds)] * size

    return made


SLOW, MANY, FAST = "a slow wire", "many ranks", "a fast wire"
SPEEDS = (1e7, 1.25e7, 3e7)
KINDS = (
    Kind(SLOW, asked((2, 3, 4), SPEEDS, 0.0, 0.001)),
    Kind(MANY, asked((32, 64, 128), SPEEDS, 0.0, 0.001)),
    Kind(FAST, asked((2, 4, 8), (1e10, 4e10), 0.0, 0.004)),
    Kind("a long way", asked((8, 16), (1.25e8,), 0.02, 0.001), (SLOW, MANY, FAST)),
)
CHOICE = Fastest(("dense", "top-k", "PowerSGD"), whole_s, words)
PROPERTIES = CHOICE.properties("one of the three", KINDS)
