"""`ltlab grade FOLDER`: each learner's notebook against the checkers, in ranks of its own, as CSV on its output."""

from __future__ import annotations

import csv
import os
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lt_core.base.errors import UserError
from lt_core.cli import page

if TYPE_CHECKING:
    from lt_core.teaching.grading.graded import Grade
    from lt_core.teaching.grading.submissions import Submission

COLUMNS = ("learner", "lab", "exercise", "passed", "of", "verdict", "seconds", "remark")
LONGEST = 300  # characters of a cell
HANDED_ON = {  # of the environment: nothing that could be a secret
    "PATH", "PYTHONPATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES",
    "VIRTUAL_ENV", "CONDA_PREFIX",
}  # fmt: skip


def grade(
    folder: Annotated[Path, typer.Argument(help="Notebooks such as alice/20_x.ipynb or alice_20_x.ipynb.")],
    lab: Annotated[list[str] | None, typer.Option(metavar="NN", help="Only this lab; may be given again.")] = None,
    limit: Annotated[float, typer.Option(metavar="SECONDS", help="The longest that one exercise may take.")] = 90,
    quick: Annotated[bool, typer.Option("--quick", help="On threads alone; real processes are left out.")] = False,
    seed: Annotated[int | None, typer.Option(help="Draw the numbers of an earlier grading again.")] = None,
) -> None:
    """Grade a folder of notebooks by the labs' checkers, as CSV.

    Of a notebook only the functions of its exercises are run, each exercise in a process of its own, with limits; what
    a notebook prints counts for nothing. This isolates from accidents, it is no sandbox: grade notebooks of strangers
    as a user who owns nothing, or in a container.
    """
    if not limit > 0:
        raise typer.BadParameter(f"--limit {limit:g} leaves no time; expected more than 0 seconds; try: --limit 90")
    with page.failures("grade"):
        by_lab = exercises(lab or [])
        chosen = choose(folder, by_lab)
        drawn = random.SystemRandom().randrange(10**6) if seed is None else seed
        note(f"{len(chosen)} notebooks; --seed {drawn} draws the same numbers again")
        table = csv.writer(sys.stdout, lineterminator="\n")
        table.writerow(COLUMNS)
        for number, one in enumerate(chosen, 1):
            for exercise in by_lab[one.lab]:
                note(f"[{number}/{len(chosen)}] {one.learner}, {exercise}")
                table.writerow(row(one, exercise, graded(one.path, exercise, drawn, not quick, limit)))
                sys.stdout.flush()


def exercises(labs: Sequence[str]) -> dict[str, list[str]]:
    """The exercises of these labs, of all if none; by lab. A lab without is a wrong use."""
    from lt_core.teaching.checks import EXERCISES

    there: dict[str, list[str]] = {}
    for name in EXERCISES:
        there.setdefault(name.split(".")[0], []).append(name)
    for lab in labs:
        if lab not in there:
            raise typer.BadParameter(f"lab {lab!r} has no exercises; those that have: {', '.join(there)}")
    return {lab: names for lab, names in there.items() if lab in labs or not labs}


def choose(folder: Path, by_lab: dict[str, list[str]]) -> list[Submission]:
    """The notebooks to grade; what is passed over is said. Errors: `UserError` where there are none."""
    from lt_core.teaching.grading.submissions import found

    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}", expected="a folder of notebooks")
    there, passed_over = found(folder, exercises([]))
    chosen = [one for one in there if one.lab in by_lab]
    for one in passed_over:
        note(f"passed over: {one.path}: {one.why}")
    if not chosen:
        example = f"NAME/{next(iter(by_lab))}_slug.ipynb or NAME_{next(iter(by_lab))}_slug.ipynb"
        raise UserError(f"no notebook to grade in {folder}", expected=example)
    return chosen


def graded(notebook: Path, exercise: str, seed: int, real: bool, limit_s: float) -> Grade:
    """One exercise of one notebook, in a process that gets of this one's environment what it needs."""
    from lt_core.teaching.grading.graded import grade
    from lt_core.teaching.grading.watch import Limits

    variables = {name: value for name, value in os.environ.items() if name in HANDED_ON}
    return grade(notebook, exercise, seed, real, Limits(seconds=limit_s), variables)


def row(one: Submission, exercise: str, found: Grade) -> list[str]:
    """The cells of a line."""
    cells = [one.learner, one.lab, exercise, str(found.holding), str(found.of), found.verdict]
    return [plain(cell) for cell in [*cells, f"{found.seconds:.1f}", found.remark]]


def plain(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula, and of at most so many characters."""
    short = cell if len(cell) <= LONGEST else f"{cell[: LONGEST - 3]}..."
    return f"'{short}" if short[:1] in ("=", "+", "-", "@", "\t", "\r") else short


def note(text: str) -> None:
    """A line for whoever watches, apart from the table."""
    page.say(page.console(stderr=True), text)
