"""What is asked of a choice: pick(p, wire, seconds) names the fastest of three ways to send 420,480 gradients.

Right is whatever takes at most 1 % longer than the fastest. seconds: what each way computes beside the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from lt_core.base.cluster import Wire
from lt_core.base.units import seconds_text
from lt_core.comm.comm import Comm
from lt_core.teaching.checks.exercise import Make, Run

ELEMENTS, TOP, FACTORS = 420_480, 4_205, 24_064  # of pocket: all, 1 % of them, both factors of rank 2 and the vectors
NAMES = ("dense", "top-k", "PowerSGD")
NEAR = 1.01
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


def asked(ranks: tuple[int, ...], bytes_per_s: tuple[float, ...], latency_s: float, own_s: float) -> Make:
    """A question: one of these ranks, of these wires; own_s: what a compressor computes."""

    def made(random: torch.Generator, size: int, elements: int) -> list[Question]:
        p = ranks[int(torch.randint(len(ranks), (), generator=random))]
        speed = bytes_per_s[int(torch.randint(len(bytes_per_s), (), generator=random))]
        seconds = {"dense": 0.0, "top-k": own_s, "PowerSGD": 1.2 * own_s}
        return [(p, Wire("drawn", latency_s, speed), seconds)] * size

    return made


def a_name(run: Run) -> str:
    """A judge: one of the three came back."""
    value = run.values()[0]
    if isinstance(value, str) and value in NAMES:
        return ""
    return f"{run.case}: it returned {value!r:.40}; one of {', '.join(map(repr, NAMES))} is wanted"


def the_fastest(run: Run) -> str:
    """A judge: nothing is more than 1 % faster."""
    if wrong := a_name(run):
        return wrong
    name, question = run.values()[0], run.given[0]
    best = min(NAMES, key=lambda one: whole_s(one, question))
    if whole_s(name, question) <= NEAR * whole_s(best, question):
        return ""
    p, wire, _ = question
    told = [f"{one} {seconds_text(whole_s(one, question))}" for one in (name, best)]
    return f"{run.case}: {p} ranks, {wire}: you say {told[0]}; {told[1]}"


def called(fn: Any, comm: Comm, question: Question) -> Any:
    """The learner's choice."""
    return fn(*question)
