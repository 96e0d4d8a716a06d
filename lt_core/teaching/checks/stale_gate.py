"""What is asked of the gate of stale synchrony: single questions, and four runs that it decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from lt_core.data_parallel.parameter_server import ParameterServer
from lt_core.data_parallel.parameter_server.book import Book
from lt_core.data_parallel.parameter_server.rules import Asynchronous
from lt_core.engine.drive import drive
from lt_core.engine.speeds import Speeds
from lt_core.teaching.checks.exercise import Make, Run

TABLES = {0: [10, 10, 10], 1: [11, 11, 10], 3: [13, 13, 10], 10: [20, 20, 10]}  # clocks at 100 s, speeds 1, 1, 10


class Asked(NamedTuple):
    """One question to the gate, or with `table` the four runs that it decides."""

    clocks: tuple[int, ...]
    rank: int
    slack: float
    table: bool = False

    @property
    def right(self) -> bool:
        """The answer."""
        return self.clocks[self.rank] - min(self.clocks) <= self.slack

    def __str__(self) -> str:
        return f"clocks {list(self.clocks)}, s = {self.slack:g}, rank {self.rank}"


@dataclass(frozen=True, kw_only=True)
class Gate(Asynchronous):
    """The learner's gate as the rule of a server that takes whatever comes."""

    fn: Callable[[list[int], int, float], object]
    slack: float
    once_a_read = True

    def may_read(self, book: Book, rank: int) -> bool:
        """What the learner says."""
        return bool(self.fn(list(book.clocks), rank, self.slack))


def gate(gap_of: Callable[[int], int], first: bool = True, slack: float | None = None) -> Make:
    """Questions of 2 to 5 workers: the one that asks is `gap_of(s)` ahead of the slowest; it is rank 0 if `first`."""

    def made(random: torch.Generator, size: int, elements: int) -> list[list[Asked]]:
        def draw(low: int, high: int) -> int:
            return int(torch.randint(low, high + 1, (), generator=random))

        asked = []
        for workers in (2, 3, 4, 5):
            s = draw(1, 4)
            gap, least = gap_of(s), draw(3, 20)
            rank = 0 if first else draw(1, workers - 1)
            clocks = [least + draw(0, 9) for _ in range(workers)]
            clocks[(rank + 1) % workers], clocks[rank] = least, least + gap
            if not gap:  # others are far ahead
                clocks[(rank + 1) % workers] += s + 1
            if not first and workers > 2:
                clocks[0] = least + (s + 1 if gap <= s else 0)  # rank 0 would get the other answer
            asked.append(Asked(tuple(clocks), rank, s if slack is None else slack))
        return [asked]

    return made


def table(slack: int) -> Make:
    """The run that the gate decides."""
    return lambda random, size, elements: [[Asked((), 0, slack, table=True)]]


def ask(fn: Callable[..., Any], comm: object, given: Sequence[Asked]) -> list[Any]:
    """The answers, each with the clocks as they are afterwards; or the clocks at 100 s."""
    answers: list[Any] = []
    for one in given:
        if one.table:
            policy = ParameterServer(3, Gate(fn=fn, slack=one.slack))
            drive(policy, Speeds([1, 1, 10]), 100)
            answers.append(policy.books[0].clocks)
        else:
            clocks = list(one.clocks)
            answers.append((fn(clocks, one.rank, one.slack), tuple(clocks)))
    return answers


def says_bool(run: Run) -> str:
    """A judge: True or False comes back."""
    for one, (answer, _) in zip(run.given[0], run.values()[0]):
        if not isinstance(answer, bool):
            return f"{one}: it returned {answer!r:.40}; True or False is wanted"
    return ""


def is_right(run: Run) -> str:
    """A judge: the answer is the right one."""
    for one, (answer, _) in zip(run.given[0], run.values()[0]):
        if bool(answer) != one.right:
            return f"{one}: you say {bool(answer)}; it is {one.clocks[one.rank] - min(one.clocks)} ahead of the slowest"
    return ""


def leaves_clocks(run: Run) -> str:
    """A judge: the list is as it was."""
    for one, (_, after) in zip(run.given[0], run.values()[0]):
        if after != one.clocks:
            return f"{one}: afterwards the list is {list(after)}; others read it too"
    return ""


def meets_the_table(run: Run) -> str:
    """A judge: clocks at 100 s."""
    slack, clocks = int(run.given[0][0].slack), run.values()[0][0]
    return "" if clocks == TABLES[slack] else f"{run.case}: your clocks are {clocks}, {TABLES[slack]} is right"
