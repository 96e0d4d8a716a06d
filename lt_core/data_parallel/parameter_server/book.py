"""What one server knows of its workers: which gradients it holds, who has read which version of the weights.

version   number of updates so far            starts[r]  r's clock when it last read
clocks[r] gradients of r that have come       read[r]    the version which r last read
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Taken(NamedTuple):
    """A gradient that lies at the server: whose, which of that worker's, and of which version of the weights."""

    rank: int
    clock: int
    read: int


class Book:
    """One server's record, kept by the policy alone: it decides, and moves no tensor."""

    def __init__(self, workers: int) -> None:
        self.version = 0
        self.held: list[Taken] = []
        self.clocks, self.read, self.starts = [0] * workers, [0] * workers, [-1] * workers

    def fresh(self) -> list[Taken]:
        """Gradients held that are of the newest version: their workers came in time for this round."""
        return [one for one in self.held if one.read == self.version]

    def reads(self, rank: int) -> None:
        """`rank` is handed the weights as they are now."""
        self.read[rank], self.starts[rank] = self.version, self.clocks[rank]

    def takes(self, rank: int, keep: bool) -> None:
        """The next gradient of `rank` has come; it is held for an update, or forgotten."""
        if keep:
            self.held.append(Taken(rank, self.clocks[rank], self.read[rank]))
        self.clocks[rank] += 1

    def updates(self) -> None:
        """All that was held went into one update."""
        self.held.clear()
        self.version += 1


class Rule(Protocol):
    """When a server lets a worker read and push, keeps a gradient, and updates: what one technique differs in."""

    @property
    def divisor(self) -> int | None:
        """The sum of the gradients of an update is divided by this; None: by how many they are."""
        ...

    @property
    def once_a_read(self) -> bool:
        """Whether a worker has to read again before it pushes again, or the rule would not hold."""
        ...

    def may_read(self, book: Book, rank: int) -> bool:
        """Whether `rank`, which is about to start a clock, is given the weights now."""
        ...

    def may_push(self, book: Book, rank: int) -> bool:
        """Whether the gradient of `rank` is taken now."""
        ...

    def keeps(self, book: Book, rank: int) -> bool:
        """Whether the gradient of `rank` will be applied, at once or later; else it is dropped."""
        ...

    def due(self, book: Book) -> bool:
        """Whether what is held makes an update now."""
        ...
