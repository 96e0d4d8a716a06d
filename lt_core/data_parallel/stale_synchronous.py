"""Stale synchronous parallel: fast workers may run ahead of the slowest, but not by more than `slack` clocks.

clock of the slowest   3            slack 2: nobody starts clock 6 before the slowest has finished 3
fastest may start      3 4 5        a read at clock c holds every update of clocks <= c - slack - 1, and one's own

slack 0 is synchronous, slack inf is asynchronous. Ho and others 2013. One thing more than the paper asks is held here:
no read at clock c holds an update of clock c + slack or later, so that slack 0 trains exactly as synchronous does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lt_core.base.errors import UserError
from lt_core.data_parallel.parameter_server.book import Book


def may_start(clocks: Sequence[int], rank: int, slack: float) -> bool:
    """Whether `rank`, which has finished `clocks[rank]` clocks, may start the next one."""
    return clocks[rank] - min(clocks) <= slack


@dataclass(frozen=True)
class StaleSynchronous:
    """The rule: each gradient is an update of its own, as soon as it comes. slack: a number, or `math.inf`."""

    slack: float
    divisor: int = 1
    once_a_read = True

    def __post_init__(self) -> None:
        if not self.slack >= 0:
            raise UserError("no worker can be ahead by that", self.slack, "a slack of 0 or more", "0 is synchronous")

    def may_read(self, book: Book, rank: int) -> bool:
        """Unless it is too far ahead of the slowest."""
        return may_start(book.clocks, rank, self.slack)

    def may_push(self, book: Book, rank: int) -> bool:
        """Once everybody has started the clock `slack` before this one."""
        return min(book.starts) >= book.clocks[rank] - self.slack

    def keeps(self, book: Book, rank: int) -> bool:
        """Every gradient."""
        return True

    def due(self, book: Book) -> bool:
        """At once."""
        return bool(book.held)


def law_clocks(seconds: Sequence[float], slack: float, horizon_s: float) -> list[int]:
    """How many clocks each worker has finished at `horizon_s`, from its seconds a clock, if messages take no time and
    all but the slowest are alike."""
    ahead = math.ceil(horizon_s / max(seconds)) + slack
    return [int(min(math.floor(horizon_s / s), ahead)) for s in seconds]
