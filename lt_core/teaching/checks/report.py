"""From runs to lines: which properties hold, which do not and why, and which could not be judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from lt_core.teaching.checks import place
from lt_core.teaching.checks.exercise import STILL_RUNNING, Case, Exercise, Property, Run, Trouble

WAITS = "not judged yet"
TRIED_S = 8.0  # how long all cases together may take; a right answer needs tenths of a second


class Line(NamedTuple):
    """One property: it holds (True), it does not (False), or it was not judged (None); and what there is to say."""

    name: str
    holds: bool | None
    why: str = ""

    @property
    def text(self) -> str:
        """Name and reason."""
        return f"{self.name}{f': {self.why}' if self.why else ''}"

    def __str__(self) -> str:
        return f"{ {True: '✔', False: '✘', None: '–'}[self.holds] } {self.text}"


def folded(lines: Sequence[Line]) -> list[Line]:
    """The same lines with those that only wait for others in one, at the end."""
    waiting = [line.name for line in lines if line.holds is None and line.why.startswith(WAITS)]
    rest = [line for line in lines if line.name not in waiting]
    return [*rest, Line(f"{WAITS}: {', '.join(waiting)}", None)] if waiting else rest


def judge(exercise: Exercise, run_of: Callable[[Case], Run]) -> list[Line]:
    """A line a property. Cases are run when they are first asked for, each once; after a hang nothing is run."""
    runs: dict[Case, Run] = {}
    lines: dict[str, Line] = {}
    until_s = time.monotonic() + TRIED_S
    for one in exercise.properties:
        missing = [name for name in one.after if not lines[name].holds]
        if missing:
            lines[one.name] = Line(one.name, None, f"{WAITS}, for “{missing[0]}” comes first")
        else:
            lines[one.name] = _line(one, runs, run_of, until_s)
    return list(lines.values())


def _line(one: Property, runs: dict[Case, Run], run_of: Callable[[Case], Run], until_s: float) -> Line:
    for case in one.cases:
        if case not in runs:
            if _hangs(runs):
                return Line(one.name, None, f"{WAITS}, for a call did not end")
            if time.monotonic() > until_s:
                return Line(
                    one.name, None, f"all calls together took more than {TRIED_S:g} s; one is one of milliseconds"
                )
            runs[case] = run_of(case)
        why = fault(one, runs[case])
        if why:
            return Line(one.name, False, why)
    return Line(one.name, True)


def fault(one: Property, run: Run) -> str:
    """What is wrong with a run under a property; "" if nothing is."""
    trouble = run.trouble()
    return told(run.case, trouble) if trouble else one.judge(run)


def told(case: Case, trouble: Trouble) -> str:
    """A trouble in one line, with the learner's own."""
    at = place.words(trouble.place)
    who = f"rank {trouble.rank}: " if case.size > 1 else ""
    what = f"{trouble.kind}, {trouble.text}" if trouble.kind == STILL_RUNNING else f"{trouble.kind}: {trouble.text}"
    first = " ".join(what.split())
    return f"{case}: {who}{first}{f' ({at})' if at else ''}"


def _hangs(runs: Mapping[Case, Run]) -> bool:
    return any(o.trouble.hang for run in runs.values() for o in run.outcomes if o.trouble)
