"""What is asked where one of several is to be chosen: it is one of them, and none is more than 1 % faster.

Nobody decides by less than 1 %, and a law that is summed in another order is as right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lt_core.base.units import seconds_text
from lt_core.comm.comm import Comm
from lt_core.teaching.checks.exercise import Case, Make, Property, Run
from lt_core.teaching.shown import number

NEAR = 1.01


class Kind(NamedTuple):
    """Questions that one wrong thought gets wrong. after: what must be right before."""

    name: str
    make: Make
    after: tuple[str, ...] = ()
    questions: int = 8

    def cases(self) -> tuple[Case, ...]:
        """One a question, each with its own number of elements: so that no two draw the same."""
        return tuple(Case(1, k + 1, self.make, self.name) for k in range(self.questions))


@dataclass(frozen=True)
class Fastest:
    """The fastest of some choices. seconds(choice, question): by law; words(question): what it was about."""

    choices: Sequence[str | int]
    seconds: Callable[[Any, Any], float]
    words: Callable[[Any], str]

    def of(self, question: Any) -> Any:
        """The right answer."""
        return min(self.choices, key=lambda one: self.seconds(one, question))

    def is_one(self, run: Run) -> str:
        """A judge: one of the choices came back."""
        value = run.values()[0]
        if isinstance(value, str | int | float) and value in self.choices:
            return ""
        return f"it returned {value!r:.40}; one of {', '.join(map(_named, self.choices))} is wanted"

    def is_near(self, run: Run) -> str:
        """A judge: no choice is more than 1 % faster."""
        if wrong := self.is_one(run):
            return wrong
        mine, question = run.values()[0], run.given[0]
        mine_s, best_s = self.seconds(mine, question), self.seconds(self.of(question), question)
        if mine_s <= NEAR * best_s:
            return ""
        told = f"you say {number(mine)}: {seconds_text(mine_s)}; {number(self.of(question))}: {seconds_text(best_s)}"
        return f"{self.words(question)}: {told}"

    def properties(self, one: str, kinds: Sequence[Kind]) -> tuple[Property, ...]:
        """That it is one of them, under the name `one`; then that it is the fastest, a property a kind."""
        return (
            Property(one, kinds[0].cases()[:1], self.is_one),
            *(Property(kind.name, kind.cases(), self.is_near, (one, *kind.after)) for kind in kinds),
        )


def _named(choice: str | int) -> str:
    return repr(choice) if isinstance(choice, str) else number(choice)


def asked(fn: Callable[..., Any], comm: Comm, question: Sequence[Any]) -> Any:
    """How a choice is called: with the parts of a question."""
    return fn(*question)
