"""Grade one exercise of one notebook: start a process for it, hold it to its limits, take its answer, end all of it.

grader -> keeper -> alone (the learner's code) -> the ranks that `check` starts
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from lt_core.comm import folders
from lt_core.teaching.checks import EXERCISES
from lt_core.teaching.grading.watch import Limits, Watch
from lt_core.teaching.script import kept

LONGEST_BYTES = 1_000_000  # of an answer


class Grade(NamedTuple):
    """What a learner's exercise is worth: properties that hold, of how many; a verdict; what there is to say.

    Verdicts: passed, not passed, not yet, not judged (ranks could not be started); missing, syntax error, unreadable,
    error (a cell that the exercise needs raises); died, stopped (over a limit).
    """

    holding: int
    of: int
    verdict: str
    seconds: float
    remark: str


def grade(notebook: Path, exercise: str, seed: int, real: bool, limits: Limits, variables: Mapping[str, str]) -> Grade:
    """Check one exercise of a notebook. real: on processes as well.  variables: the environment of its process."""
    begun_s = time.monotonic()
    folders.sweep()  # what a grader that was killed has left
    with folders.make() as folder:
        place, answer = str(folder.path), folder.path / "answer.json"
        words = [str(notebook.resolve()), exercise, str(seed), "real" if real else "threads", str(answer)]
        command = [sys.executable, "-P", "-m", "lt_core.teaching.grading.alone", *words]
        private = {"HOME": place, "TMPDIR": place, "XDG_RUNTIME_DIR": place}  # what it writes goes with the folder
        with kept(command, {**variables, **private}) as process:
            watch = Watch(process, limits)
            try:
                stopped = watch.until_it_ends()
            finally:
                watch.end()
        found = {"verdict": "stopped", "remark": stopped} if stopped else _answer(answer) or watch.death()
    return _grade(found, exercise, real, time.monotonic() - begun_s)


def _answer(path: Path) -> dict[str, Any]:
    """What the process left, if it is whole and of the shape that `alone` gives it."""
    try:
        if path.stat().st_size > LONGEST_BYTES:
            return {}
        found = json.loads(path.read_bytes())
        lines = [(str(name), holds, str(why)) for name, holds, why in found.get("lines", [])]
        good = all(holds in (True, False, None) for _, holds, _ in lines) and isinstance(found["verdict"], str)
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return {}
    return {**found, "lines": lines, "tried": [str(what) for what in found.get("tried") or ()]} if good else {}


def _grade(found: Mapping[str, Any], exercise: str, real: bool, seconds: float) -> Grade:
    asked = EXERCISES[exercise]
    of = len(asked.properties) + bool(asked.real and real)
    lines = found.get("lines", [])
    failing = [f"{name}: {why}" for name, holds, why in lines if holds is False]
    opened = [f"{name}: {why}" for name, holds, why in lines if holds is None and why and not failing]
    tried = [f"tried: {what}" for what in found.get("tried", [])]
    remark = " | ".join([*filter(None, [found.get("remark", "")]), *failing[:1], *opened[:1], *tried])
    holding = min(of, sum(1 for _, holds, _ in lines if holds))
    return Grade(holding, of, found["verdict"], seconds, " ".join(remark.split()))
