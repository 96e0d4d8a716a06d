"""From runs to lines: which properties hold, which do not and why, and which could not be judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from lt_core.teaching.checks import place
from lt_core.teaching.checks.exercise import STILL_RUNNING, Case, Exercise, Property, Run, Trouble


class Line(NamedTuple):
    """One property: it holds (True), it does not (False), or it was not judged (None); and what there is to say."""

    name: str
    holds: bool | None
    why: str = ""

    def __str__(self) -> str:
        sign = {True: "✔", False: "✘", None: "–"}[self.holds]
        return f"{sign} {self.name}{f': {self.why}' if self.why else ''}"


def judge(exercise: Exercise, run_of: Callable[[Case], Run]) -> list[Line]:
    """A line a property. Cases are run when they are first asked for, each once; after a hang nothing is run."""
    runs: dict[Case, Run] = {}
    lines: dict[str, Line] = {}
    for one in exercise.properties:
        missing = [name for name in one.after if not lines[name].holds]
        if missing:
            lines[one.name] = Line(one.name, None, f"not judged before “{missing[0]}” holds")
        else:
            lines[one.name] = _line(one, runs, run_of)
    return list(lines.values())


def _line(one: Property, runs: dict[Case, Run], run_of: Callable[[Case], Run]) -> Line:
    for case in one.cases:
        if case not in runs:
            if _hangs(runs):
                return Line(one.name, None, "not judged, for a call did not end")
            runs[case] = run_of(case)
        why = fault(one, runs[case])
        if why:
            return Line(one.name, False, why)
    return Line(one.name, True)


def fault(one: Property, run: Run) -> str:
    """What is wrong with a run under a property; "" if nothing is."""
    trouble = run.trouble()
    return f"{run.case}: {told(trouble)}" if trouble else one.judge(run)


def told(trouble: Trouble) -> str:
    """A trouble in one line, with the learner's own."""
    at = place.words(trouble.place)
    what = f"{trouble.kind}, {trouble.text}" if trouble.kind == STILL_RUNNING else f"{trouble.kind}: {trouble.text}"
    first = " ".join(what.split())
    return f"rank {trouble.rank}: {first}{f' ({at})' if at else ''}"


def _hangs(runs: Mapping[Case, Run]) -> bool:
    return any(o.trouble.hang for run in runs.values() for o in run.outcomes if o.trouble)
