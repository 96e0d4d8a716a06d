"""Run a learner's function on ranks and say, property by property, what holds.

    check("20.reduce_scatter", my_function)
    ✔ values
    ✘ messages: sent 8, the law says 6 (rank 1 sent chunk 3 twice)

Threads come first, for they answer at once; what holds there is run on real processes. Values differ by rank, position
and call. Nothing raised by the function, and no wait of its own, gets past this call.
"""

from __future__ import annotations

import contextlib
import html
import random
from dataclasses import dataclass, replace

from lt_core.base.errors import UserError
from lt_core.teaching.checks import EXERCISES, elsewhere, here
from lt_core.teaching.checks.attempt import Job
from lt_core.teaching.checks.elsewhere import Launch, launched
from lt_core.teaching.checks.report import Line, folded, judge, told
from lt_core.teaching.heard import Heard
from lt_core.teaching.shown import AlreadyShown, Chip, bad, good, row, say, undecided

CHIPS: dict[bool | None, Chip] = {True: good("✔", "holds"), False: bad("✘", "fails"), None: undecided("–", "open")}


@dataclass(frozen=True)
class Checked(AlreadyShown):
    """What a check found: `passed`, a line a property, `not_yet` where the exercise is still to be written."""

    name: str
    lines: tuple[Line, ...]
    seed: int
    not_yet: bool = False
    printed: str = ""

    @property
    def passed(self) -> bool:
        """Whether every property was judged and holds."""
        return not self.not_yet and all(line.holds for line in self.lines)

    @property
    def failed(self) -> tuple[str, ...]:
        """The names of the properties that do not hold."""
        return tuple(line.name for line in self.lines if line.holds is False)

    @property
    def verdict(self) -> str:
        """The whole in one line."""
        if self.not_yet:
            return f"{self.name}: not yet. Write it, then run this cell again; hint({self.name!r}) helps."
        holding = sum(1 for line in self.lines if line.holds)
        if self.passed:
            return f"{self.name}: passed, all {holding} properties hold."
        again = f"check({self.name!r}, ..., seed={self.seed}) draws the same numbers again"
        return f"{self.name}: not passed, {holding} of {len(self.lines)} properties hold. {again}."

    def __str__(self) -> str:
        return "\n".join(filter(None, [*map(str, folded(self.lines)), self.printed, self.verdict]))


def check(name: str, fn: object, *, seed: int | None = None, launch: Launch | None = launched) -> Checked:
    """Show which properties of an exercise a function has, and return the record: `check(...).passed`.

    name: such as "20.reduce_scatter".  seed: to draw the numbers of an earlier check again.  launch: how real processes
    are started; None leaves them out. Errors: `UserError` for a name that is no exercise; none for what `fn` does.
    """
    if name not in EXERCISES:
        raise UserError("no exercise of this name", repr(name), ", ".join(sorted(EXERCISES)))
    drawn = random.SystemRandom().randrange(10**6) if seed is None else seed
    if callable(fn):
        found = _found(Job(EXERCISES[name], fn, drawn), launch)
    else:
        got = f"got {fn!r:.40}; hand over the function itself, without calling it"
        found = Checked(name, (Line("a function", False, got),), drawn)
    say(str(found), html_of(found))
    return found


def _found(job: Job, launch: Launch | None) -> Checked:
    heard, name = Heard(), job.exercise.name
    with contextlib.redirect_stdout(heard):
        found = on_threads(job)
    if found.passed and job.exercise.real and launch:
        print(f"{name}: {len(found.lines)} properties hold on threads, now real processes.")
        with contextlib.redirect_stdout(heard):
            real = on_processes(job, launch)
        found = replace(found, lines=(*found.lines, real))
    return replace(found, printed=heard.text())


def on_threads(job: Job) -> Checked:
    """The lines of all properties, judged on threads."""
    exercise = job.exercise
    first = here.run(job, exercise.properties[0].cases[0])
    trouble = first.trouble()
    if trouble and trouble.unwritten:
        return Checked(exercise.name, (), job.seed, not_yet=True)
    known = {first.case: first}
    lines = judge(exercise, lambda case: known.pop(case, None) or here.run(job, case))
    return Checked(exercise.name, tuple(lines), job.seed)


def on_processes(job: Job, launch: Launch) -> Line:
    """The one line that says whether all of it also holds on real processes."""
    name, exercise = "real processes", job.exercise
    try:
        backend, runs = elsewhere.runs(launch, job, exercise.real)
    except UserError as error:
        return Line(name, False, str(error))
    except Exception as error:  # a machine that starts no processes is not the learner's fault
        return Line(name, None, f"could not be started: {type(error).__name__}: {' '.join(str(error).split())}")
    for run in runs:
        if trouble := run.trouble():
            return Line(name, False, told(run.case, trouble))
        wrong = [
            f"{one.name}: {why}" for one in exercise.properties if run.case in one.cases and (why := one.judge(run))
        ]
        if wrong:
            return Line(name, False, wrong[0])
    return Line(f"{name} ({backend}, {max(c.size for c in exercise.real)} ranks)", True)


def html_of(checked: Checked) -> str:
    """The report with a chip a line."""
    rows = "".join(row(CHIPS[line.holds], line.text) for line in folded(checked.lines))
    chip = (
        undecided("–", "not yet")
        if checked.not_yet
        else good("✔", "passed")
        if checked.passed
        else bad("✘", "not passed")
    )
    printed = f"<pre>{html.escape(checked.printed)}</pre>" if checked.printed else ""
    return rows + printed + row(chip, checked.verdict)
