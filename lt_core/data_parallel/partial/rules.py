"""A round goes on without the slow: which gradients make it, and what becomes of those that come late.

quorum 3 of 4          rank 0 1 2 ====|====|====|        the round is as long as the third fastest is slow
                       rank 3     ==============> late

backup workers   late gradients are dropped, the mean is over the quorum          (Chen and others 2016)
eager            late gradients go into the next round, divided by all N always   (Li and others 2020: solo, majority)

While a rank computes, somebody else must be awake to take what the others bring: eager-SGD has a communication thread
on each rank for that; here one rank more, the hub, which is a parameter server. Who comes late reads the newest
weights, hence every update that it missed. Both rules with a quorum of all are synchronous.

A worker that never comes holds nobody up where the quorum is met without it. All updates are made, and then the
referee's `Deadline` names it, for a run is over when all its ranks have left.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from lt_core.base.errors import UserError
from lt_core.data_parallel.parameter_server.book import Book


def check_quorum(quorum: int, workers: int) -> None:
    """Refuse a quorum that no round could have."""
    if not isinstance(quorum, int) or not 1 <= quorum <= workers:
        raise UserError(f"no round has a quorum of {quorum}", expected=f"1 to {workers}, the workers")


@dataclass(frozen=True)
class BackupWorkers:
    """The rule: the first `quorum` gradients of a version make the next one; later ones of it are dropped."""

    workers: int
    quorum: int
    once_a_read = True

    def __post_init__(self) -> None:
        check_quorum(self.quorum, self.workers)

    @property
    def divisor(self) -> None:
        """The mean is over those who came: a quorum of them, or fewer when the last workers have stopped."""
        return

    def may_read(self, book: Book, rank: int) -> bool:
        """When its gradient is used or dropped."""
        return all(one.rank != rank for one in book.fresh())

    def may_push(self, book: Book, rank: int) -> bool:
        """At any time."""
        return True

    def keeps(self, book: Book, rank: int) -> bool:
        """Only a gradient of the newest version."""
        return book.read[rank] == book.version

    def due(self, book: Book) -> bool:
        """When enough have come."""
        return len(book.held) == self.quorum


@dataclass(frozen=True)
class Eager:
    """The rule: a round ends when `quorum` ranks have come; late gradients go into the round that is then open.

    quorum 1 is solo: the first to come ends the round.
    """

    workers: int
    quorum: int = 1
    once_a_read = True

    def __post_init__(self) -> None:
        check_quorum(self.quorum, self.workers)

    @property
    def divisor(self) -> int:
        """All, also those who contribute nothing this time."""
        return self.workers

    def may_read(self, book: Book, rank: int) -> bool:
        """When its gradient is used, or waits for the next round as one that came late."""
        return all(one.rank != rank for one in book.fresh())

    def may_push(self, book: Book, rank: int) -> bool:
        """At any time."""
        return True

    def keeps(self, book: Book, rank: int) -> bool:
        """Every gradient."""
        return True

    def due(self, book: Book) -> bool:
        """When enough came in time."""
        return len(book.fresh()) >= self.quorum


@dataclass(frozen=True)
class Majority(Eager):
    """Eager, but a rank drawn anew for each round ends it by coming: on average half of the ranks are there."""

    seed: int = 0

    def due(self, book: Book) -> bool:
        """When the rank that was drawn has come."""
        drawn = random.Random(f"{self.seed} {book.version}").randrange(self.workers)
        return any(one.rank == drawn for one in book.fresh())
