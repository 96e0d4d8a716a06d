"""One time for several processes: how far another clock is ahead, found by asking it.

asked_s          answered_s          the other clock reads `there_s` somewhere in between; on the quickest of
here ---------------> there          several round trips the midpoint is off by at most half a round trip
     <---------------                (Cristian 1989)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Probe(NamedTuple):
    """One question to another clock: when it was asked and answered here, and what the other clock read."""

    asked_s: float
    there_s: float
    answered_s: float


def offset(probes: Iterable[Probe]) -> float:
    """Seconds by which the other clock is ahead of ours, from the probe with the shortest round trip."""
    best = min(probes, key=lambda p: p.answered_s - p.asked_s)
    return best.there_s - (best.asked_s + best.answered_s) / 2


def uncertainty_s(probes: Iterable[Probe]) -> float:
    """The largest error that `offset` can have: half of the shortest round trip."""
    return min(p.answered_s - p.asked_s for p in probes) / 2
