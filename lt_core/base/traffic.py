"""How many bytes and messages left a rank: `counted` at our own door, `by_law` for the backend's own collectives.

The two are kept apart because only the first is a measurement: what NCCL or gloo sends inside its all-reduce is not
seen, so its formula is written down instead (and held against the kernel's counter in the tests).
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Bytes and messages sent, by peer, but for those of threads (by ident) that are `unheard` for the moment."""

    bytes_to: Counter[int] = field(default_factory=Counter)
    messages_to: Counter[int] = field(default_factory=Counter)
    unheard: set[int] = field(default_factory=set, compare=False, repr=False)

    def add(self, peer: int, nbytes: int, messages: int = 1) -> None:
        """Note `nbytes` sent to `peer` in `messages` messages."""
        if threading.get_ident() not in self.unheard:
            self.bytes_to[peer] += nbytes
            self.messages_to[peer] += messages

    @property
    def bytes(self) -> int:
        """All bytes sent."""
        return sum(self.bytes_to.values())

    @property
    def messages(self) -> int:
        """All messages sent."""
        return sum(self.messages_to.values())


@dataclass
class Traffic:
    """What one rank sent: `counted` at its own door, `by_law` inside the backend's collectives."""

    counted: Tally = field(default_factory=Tally)
    by_law: Tally = field(default_factory=Tally)

    @property
    def bytes(self) -> int:
        """All bytes sent, whichever way they were known."""
        return self.counted.bytes + self.by_law.bytes

    @property
    def messages(self) -> int:
        """All messages sent, whichever way they were known."""
        return self.counted.messages + self.by_law.messages

    def copy(self) -> Traffic:
        """The counts of this moment, to be subtracted from later ones."""
        return self + Traffic()

    def clear(self) -> None:
        """Start from zero."""
        self.counted, self.by_law = Tally(), Tally()

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(_joined(self.counted, other.counted, 1), _joined(self.by_law, other.by_law, 1))

    def __sub__(self, other: Traffic) -> Traffic:
        """What was sent since `other` was copied."""
        return Traffic(_joined(self.counted, other.counted, -1), _joined(self.by_law, other.by_law, -1))


def _joined(left: Tally, right: Tally, sign: int) -> Tally:
    joined = Tally()
    for peer in sorted({*left.bytes_to, *left.messages_to, *right.bytes_to, *right.messages_to}):
        nbytes = left.bytes_to[peer] + sign * right.bytes_to[peer]
        joined.add(peer, nbytes, left.messages_to[peer] + sign * right.messages_to[peer])
    return joined
