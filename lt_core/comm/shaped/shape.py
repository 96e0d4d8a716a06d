"""What the wires are like: how long a message of a link takes, and a collective of the backend's own."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.comm import laws


@dataclass(frozen=True)
class Shape:
    """What every link is like: `wire` unless `links[sender, receiver]`; up to `jitter_s` more for each message, drawn
    from `seed`; and `straggler[rank]` times as long where that rank is an end."""

    wire: Wire
    links: Mapping[tuple[int, int], Wire]
    jitter_s: float
    straggler: Mapping[int, float]
    seed: int

    def check(self, size: int) -> None:
        """Refuse ranks that are not there and times that are none."""
        named = {*self.straggler, *(rank for link in self.links for rank in link)}
        if unknown := sorted(r for r in named if not 0 <= r < size):
            raise UserError(f"a wire is shaped for rank {unknown[0]}", unknown[0], f"0 to {size - 1}")
        if self.jitter_s < 0:
            raise UserError("jitter cannot make a message faster", self.jitter_s, "at least 0 s")
        if quick := [factor for factor in self.straggler.values() if factor < 1]:
            raise UserError("a straggler is not faster than others", quick[0], "a factor of at least 1")

    def seconds(self, sender: int, receiver: int, nbytes: float) -> float:
        """How long a message takes, without jitter."""
        slow = max(self.straggler.get(sender, 1.0), self.straggler.get(receiver, 1.0))
        wire = self.links.get((sender, receiver), self.wire)
        return slow * (wire.latency_s + nbytes / wire.bytes_per_s)

    def jitter(self, ranks: Sequence[int], number: int, messages: int = 1) -> float:
        """Seconds by which message or collective `number` of some ranks takes longer, drawn alike on all of them."""
        if not self.jitter_s:
            return 0.0
        drawn = random.Random(f"{self.seed} {list(ranks)} {number}")
        return self.jitter_s * sum(drawn.random() for _ in range(messages))

    def ring_seconds(self, verb: str, nbytes: int, ranks: Sequence[int], number: int) -> float:
        """How long a backend's own collective takes by the ring's law, over the slowest link of the ring."""
        ring = list(pairwise([*ranks, ranks[0]]))
        law = laws.seconds(verb, nbytes, len(ranks), lambda n: max(self.seconds(a, b, n) for a, b in ring))
        return law + self.jitter(ranks, number, laws.rounds(verb, len(ranks)))
