"""When the server updates: once all are there, or at every gradient that comes.

synchronous    w <- w - step * mean of all N gradients, all of one version: data parallelism through a server
asynchronous   w <- w - step * g(a version that may be old): nobody waits (Dean and others 2012)
"""

from __future__ import annotations

from dataclasses import dataclass

from lt_core.data_parallel.parameter_server.book import Book


@dataclass(frozen=True)
class Synchronous:
    """All `workers` gradients of a version make the next one, their mean."""

    workers: int
    once_a_read = True

    @property
    def divisor(self) -> int:
        """The mean is over all."""
        return self.workers

    def may_read(self, book: Book, rank: int) -> bool:
        """Once its own gradient is in the weights."""
        return all(one.rank != rank for one in book.held)

    def may_push(self, book: Book, rank: int) -> bool:
        """At any time."""
        return True

    def keeps(self, book: Book, rank: int) -> bool:
        """Every gradient."""
        return True

    def due(self, book: Book) -> bool:
        """When the last has come."""
        return len(book.held) == self.workers


@dataclass(frozen=True)
class Asynchronous:
    """Each gradient makes a version as soon as it comes."""

    divisor: int = 1
    once_a_read = False

    def may_read(self, book: Book, rank: int) -> bool:
        """At any time."""
        return True

    def may_push(self, book: Book, rank: int) -> bool:
        """At any time."""
        return True

    def keeps(self, book: Book, rank: int) -> bool:
        """Every gradient, however old."""
        return True

    def due(self, book: Book) -> bool:
        """At once."""
        return bool(book.held)
