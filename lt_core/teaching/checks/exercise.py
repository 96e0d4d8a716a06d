"""What an exercise asks, as plain data: cases to run, and properties that judge what came of them.

A case says how many ranks, how many elements, and what each rank is handed. A property looks at some of the cases and
says "" or what is wrong with one; some can be judged only after others hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from lt_core.base.traffic import Traffic
from lt_core.comm.comm import Comm

STILL_RUNNING = "still running"


class Place(NamedTuple):
    """A line of the learner's own code."""

    file: str
    line: int
    function: str


class Trouble(NamedTuple):
    """How a call ended, if not with a value: an exception's name and text, or `STILL_RUNNING`."""

    rank: int
    kind: str
    text: str
    place: Place | None = None
    consequence: bool = False  # another rank failed first
    unwritten: bool = False  # the exercise is still to be written
    hang: bool = False  # it did not end by itself


class Sent(NamedTuple):
    """One message: to whom, and which elements of which storage, as far as it shows."""

    peer: int
    elements: int
    first: int
    whole: int  # elements of the storage


class Outcome(NamedTuple):
    """What one rank's call came to."""

    value: Any = None
    changed: bool = False  # whether what it was handed is another afterwards
    traffic: Traffic = Traffic()
    sent: tuple[Sent, ...] = ()
    trouble: Trouble | None = None
    begins: Place | None = None  # the learner's function


Make = Callable[[torch.Generator, int, int], list[Any]]  # (random, ranks, elements) -> what each rank is handed


class Case(NamedTuple):
    """One call of the learner's function on each of `size` ranks."""

    size: int
    elements: int
    make: Make
    what: str = ""  # in place of "12 elements on 2 ranks"

    def given(self, seed: int) -> list[Any]:
        """What each rank is handed: the same wherever it is asked with this seed."""
        random = torch.Generator().manual_seed(seed * 1009 + self.size * 31 + self.elements)
        return self.make(random, self.size, self.elements)

    def __str__(self) -> str:
        if self.what:
            return self.what
        ranks = f"{self.size} rank{'s' * (self.size > 1)}"
        return f"{self.elements} element{'s' * (self.elements != 1)} on {ranks}"


class Run(NamedTuple):
    """A case and what came of it, by rank."""

    case: Case
    given: Sequence[Any]
    outcomes: Sequence[Outcome]

    def trouble(self) -> Trouble | None:
        """The first cause among what went wrong; None where every rank returned."""
        found = [o.trouble for o in self.outcomes if o.trouble]
        return min(found, key=lambda t: (t.consequence, t.kind != STILL_RUNNING, t.rank), default=None)

    def values(self) -> list[Any]:
        """What each rank returned."""
        return [o.value for o in self.outcomes]


class Property(NamedTuple):
    """One thing that is so or not: `judge` gives "" or what is wrong with a run; `after` must hold before."""

    name: str
    cases: tuple[Case, ...]
    judge: Callable[[Run], str]
    after: tuple[str, ...] = ()


class Exercise(NamedTuple):
    """What `check` runs. face: how the function is called, in words.  real: which cases also run on real processes."""

    name: str
    face: str
    properties: tuple[Property, ...]
    real: tuple[Case, ...]
    call: Callable[[Callable[..., Any], Comm, Any], Any]


class Answer(NamedTuple):
    """A right or wrong answer that learners give: the thought behind it, and the property that refuses it."""

    label: str
    thought: str
    fn: Callable[..., Any]
    refused_by: str = ""
    alone: bool = False  # no other property has anything against it
