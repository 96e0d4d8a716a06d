"""When a message may start: a rank sends one message at a time, and receives one.

out of 0   |--- to 1 ---|--- to 2 ---|
into 2         |--- from 1 ---|......|--- from 0 ---|      the second left at the dots, and waits for the port
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lt_core.comm.shaped.shape import Shape

_KEPT = 256  # how many busy times a port remembers: more than can still matter


class Time(NamedTuple):
    """From when to when something lasts, in seconds of this rank's `time.perf_counter`."""

    start_s: float
    end_s: float


class Coming(NamedTuple):
    """A message on its way to us: when it left, from whom, and how long it takes."""

    left_s: float
    peer: int
    seconds: float


class Port:
    """One direction of a rank: it serves one message at a time, whoever asks first."""

    def __init__(self) -> None:
        self._busy: list[Time] = []  # in order

    def take(self, earliest_s: float, seconds: float) -> Time:
        """Take the first free time of that length."""
        start_s = earliest_s
        for busy in self._busy:
            if start_s + seconds <= busy.start_s:
                break
            start_s = max(start_s, busy.end_s)
        taken = Time(start_s, start_s + seconds)
        self._busy = sorted([*self._busy, taken])[-_KEPT:]
        return taken

    def end_s(self) -> float:
        """When all that was taken is over."""
        return max((busy.end_s for busy in self._busy), default=0.0)


class Ports:
    """What a rank has once, in however many groups it is: two ports, and a count of what each link carried."""

    def __init__(self, shape: Shape) -> None:
        self.lock = threading.RLock()  # a rank may have several threads
        self._shape = shape
        self._out, self._into = Port(), Port()
        self._numbers: Counter[tuple[int, ...]] = Counter()

    def seconds(self, sender: int, receiver: int, nbytes: int) -> float:
        """How long the next message of a link takes."""
        return self._shape.seconds(sender, receiver, nbytes) + self._shape.jitter(
            (sender, receiver), self._next(sender, receiver)
        )

    def collective_seconds(self, verb: str, nbytes: int, ranks: Sequence[int]) -> float:
        """How long the next collective of these ranks takes."""
        return self._shape.ring_seconds(verb, nbytes, ranks, self._next(*ranks))

    def leave(self, begun_s: float, seconds: float) -> Time:
        """When a message that is begun now travels, as far as its sender is concerned."""
        return self._out.take(begun_s, seconds)

    def land(self, begun_s: float, coming: Iterable[Coming]) -> list[Time]:
        """When messages travel that we take from `begun_s` on, in the order in which they left."""
        with self.lock:
            return [self._into.take(max(c.left_s, begun_s), c.seconds) for c in sorted(coming)]

    def meet(self, begun_s: float, seconds: float) -> Time:
        """When a collective travels that the last rank began at `begun_s`: it takes both ports."""
        with self.lock:
            start_s = max(begun_s, self._out.end_s(), self._into.end_s())
            self._out.take(start_s, seconds)
            return self._into.take(start_s, seconds)

    def _next(self, *ranks: int) -> int:
        with self.lock:
            self._numbers[ranks] += 1
            return self._numbers[ranks]
