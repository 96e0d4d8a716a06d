"""Right and wrong answers to lab 20's choice, each wrong one with its thought and the property that refuses it."""

from __future__ import annotations

from lt_core.base.cluster import Wire
from lt_core.teaching.checks.choice import CHOICE, seconds
from lt_core.teaching.checks.exercise import Answer


def by_the_laws(p: int, n: int, wire: Wire) -> str:
    """The project's own laws, compared."""
    return str(CHOICE.of((p, n, wire)))


def by_hand(p: int, n: int, wire: Wire) -> str:
    """Rounds times latency and bytes over bandwidth, written out; who folds pays for it twice."""
    steps = p.bit_length() - 1
    q = 2**steps
    fold = 0 if p == q else 2
    rounds = {"ring": 2 * (p - 1), "recursive doubling": steps + fold, "halving-doubling": 2 * steps + fold}
    times = {"ring": 2 * (p - 1) / p, "recursive doubling": steps + fold, "halving-doubling": 2 * (q - 1) / q + fold}
    return min(rounds, key=lambda name: rounds[name] * wire.latency_s + times[name] * n / wire.bytes_per_s)


def ring_always(p: int, n: int, wire: Wire) -> str:
    """No all-reduce sends fewer bytes."""
    return "ring"


def fewest_bytes(p: int, n: int, wire: Wire) -> str:
    """Compares what is sent, and forgets what each round waits."""
    return by_hand(p, n, Wire("no latency", 0.0, wire.bytes_per_s))


def fewest_rounds(p: int, n: int, wire: Wire) -> str:
    """Compares rounds, and forgets what they carry."""
    return by_hand(p, n, Wire("free", wire.latency_s, float("inf")))


def never_folds(p: int, n: int, wire: Wire) -> str:
    """As if all ranks were a power of two."""
    return by_hand(2 ** (p.bit_length() - 1), n, wire)


def the_lab_s_number(p: int, n: int, wire: Wire) -> str:
    """Small is what the office calls small."""
    return by_hand(p, n, Wire("office", 1e-4, 1.25e8))


def its_seconds(p: int, n: int, wire: Wire) -> float:
    """How long it takes, and not which."""
    return seconds(by_the_laws(p, n, wire), (p, n, wire))


RIGHT = {"20.choose": (by_the_laws, by_hand)}

WRONG: dict[str, tuple[Answer, ...]] = {
    "20.choose": (
        Answer("W8", "the ring always", ring_always, "small tensors"),
        Answer("W9", "ignores ranks that are no power of two", never_folds, "no power of two", alone=True),
        Answer("W10", "compares bytes only", fewest_bytes, "small tensors", alone=True),
        Answer("W11", "compares rounds only", fewest_rounds, "large tensors", alone=True),
        Answer("W12", "110 kB on any wire", the_lab_s_number, "any wire", alone=True),
        Answer("W13", "seconds in place of a name", its_seconds, "one of the three", alone=True),
    ),
}
