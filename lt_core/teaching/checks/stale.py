"""Lab 22: a gate, a round, a step size, as plain functions.

may_start(clocks, rank, slack) -> bool        whether a worker may start its next clock
eager_round(weights, came, late) -> weights   one round that does not wait, every rank's weights after it
step_for(workers, curvature) -> float         a step that is stable where N workers push one after the other
"""

from __future__ import annotations

import math

from lt_core.teaching.checks import stale_gate, stale_round, stale_step
from lt_core.teaching.checks.exercise import Case, Exercise, Make, Property
from lt_core.teaching.checks.stale_gate import TABLES, gate, is_right
from lt_core.teaching.checks.stale_round import by_all, round_of
from lt_core.teaching.checks.stale_step import is_bold, is_stable, sizes

SLOWEST, EXACTLY, FURTHER = "the slowest may start", "exactly s ahead may start", "further ahead must wait"


def _cases(what: str, make: Make, elements: int = 1) -> tuple[Case, ...]:
    return (Case(1, elements, make, what),)


ANY = _cases("some clocks", gate(lambda s: s))
PART, NEW = (
    _cases("3 of 4 came, one from before", round_of(3, late=True), 5),
    _cases("all 4 came", round_of(4, late=False), 5),
)
MANY, OTHER = (
    _cases("2 to 32 workers", sizes((2, 4, 8, 32), (1.0,))),
    _cases("other curvatures", sizes((2,), (0.1, 7.0))),
)

EXERCISES = (
    Exercise(
        "22.may_start",
        "may_start(clocks, rank, slack)",
        (
            Property("True or False", ANY, stale_gate.says_bool),
            Property(SLOWEST, _cases("the slowest asks", gate(lambda s: 0)), is_right, ("True or False",)),
            Property(EXACTLY, ANY, is_right, ("True or False",)),
            Property(FURTHER, _cases("one too far ahead", gate(lambda s: s + 1)), is_right, ("True or False",)),
            Property(
                "whoever asks",
                (
                    *_cases("another may", gate(lambda s: s, False)),
                    *_cases("another waits", gate(lambda s: s + 1, False)),
                ),
                is_right,
                (SLOWEST, EXACTLY, FURTHER),
            ),
            Property("s = inf", _cases("no bound", gate(lambda s: 9, slack=math.inf)), is_right, ("True or False",)),
            Property("clocks untouched", ANY, stale_gate.leaves_clocks, ("True or False",)),
            Property(
                "the four tables",
                tuple(Case(1, s, stale_gate.table(s), f"speeds 1, 1, 10, s = {s}") for s in TABLES),
                stale_gate.meets_the_table,
                (SLOWEST, EXACTLY, FURTHER, "whoever asks", "clocks untouched"),
            ),
        ),
        (),
        stale_gate.ask,
    ),
    Exercise(
        "22.eager_round",
        "eager_round(weights, came, late)",
        (
            Property("weights of every rank", PART, stale_round.gives_weights),
            Property("all in time: synchronous", NEW, by_all, ("weights of every rank",)),
            Property("each gradient once", PART, stale_round.each_once, ("weights of every rank",)),
            Property("divided by all N", PART, by_all, ("each gradient once",)),
            Property("the late rank too", PART, stale_round.all_alike, ("weights of every rank",)),
            Property("gradients untouched", PART, stale_round.leaves_gradients, ("weights of every rank",)),
        ),
        (),
        stale_round.play,
    ),
    Exercise(
        "22.step_for",
        "step_for(workers, curvature)",
        (
            Property("a number above 0", MANY, stale_step.is_number),
            Property("stable", MANY, is_stable, ("a number above 0",)),
            Property("not timid", MANY, is_bold, ("a number above 0",)),
            Property(
                "whatever the curvature", OTHER, lambda run: is_stable(run) or is_bold(run), ("stable", "not timid")
            ),
        ),
        (),
        stale_step.numbers,
    ),
)
