"""Wrong answers to lab 32's choice, each with its thought."""

from __future__ import annotations

from collections.abc import Mapping

from lt_core.base.cluster import Wire
from lt_core.teaching.checks.compress_answers import by_hand, pick


def highest_ratio(p: int, wire: Wire, seconds: Mapping[str, float]) -> str:
    """1 % is less than 6 %."""
    return "top-k"


def never(p: int, wire: Wire, seconds: Mapping[str, float]) -> str:
    """Compression is for large clusters."""
    return "dense" if p < 32 else pick(p, wire, seconds)


def gathers_like_a_ring(p: int, wire: Wire, seconds: Mapping[str, float]) -> str:
    """As if pairs were summed on the way."""
    ring = 2 * (p - 1) / p / wire.bytes_per_s
    times = {"dense": 4 * 420_480 * ring, "top-k": 8 * 4_205 * ring, "PowerSGD": 4 * 24_064 * ring}
    return min(times, key=lambda name: times[name] + seconds[name]) if p >= 32 else pick(p, wire, seconds)


def computing_is_free(p: int, wire: Wire, seconds: Mapping[str, float]) -> str:
    """Looks at the wire alone."""
    return by_hand(p, wire, dict.fromkeys(seconds, 0.0))


def no_latency(p: int, wire: Wire, seconds: Mapping[str, float]) -> str:
    """Looks at the bytes alone."""
    return by_hand(p, Wire("no latency", 0.0, wire.bytes_per_s), seconds)


def a_number(p: int, wire: Wire, seconds: Mapping[str, float]) -> float:
    """How many times shorter."""
    return 420_480 / 4_205
