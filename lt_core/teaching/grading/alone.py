"""The process in which one exercise of one notebook is graded: `python -m ...alone NOTEBOOK EXERCISE SEED REAL ANSWER`.

It reads the notebook, runs what the exercise needs and nothing more, asks `check`, and leaves a file of JSON. Nothing
that a learner's code prints is read, and none of the names which it binds reach the checker.
"""

from __future__ import annotations

import ast
import json
import os
import re
import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lt_core.base.records import JSON
from lt_core.comm.comm import Comm
from lt_core.teaching.check import Checked, check
from lt_core.teaching.checks import EXERCISES, place
from lt_core.teaching.checks.elsewhere import launched
from lt_core.teaching.grading import cells
from lt_core.teaching.grading.guard import Guard

FILE_BYTES = 200_000_000  # the largest file that a learner's code may write


def graded(notebook: Path, exercise: str, seed: int, real: bool, guard: Guard) -> dict[str, JSON]:
    """What came of it: a verdict, a remark, the lines of the check, and what the learner's code tried."""
    try:
        code = cells.read(notebook)
    except (OSError, ValueError) as error:
        return {"verdict": "unreadable", "remark": str(error)}
    answer = code.checked.get(exercise) or _by_face(exercise)
    used, unbound = cells.needed(code, answer)
    broken = "; ".join(one.why for one in code.unread if any(_names(one.source, name) for name in unbound))
    if missing := sorted(unbound & cells.names(answer)):
        verdict = "syntax error" if broken else "missing"
        return {"verdict": verdict, "remark": broken or f"no cell binds {', '.join(missing)}"}
    try:
        fn = cells.value(used, answer)
    except BaseException as error:  # also SystemExit: whatever a learner's cell raises is said
        return {"verdict": "error", "remark": _told(error), "tried": [*guard.tried]}
    found = check(exercise, fn, seed=seed, launch=_launch(guard) if real else None)
    return {**_of(found), "remark": broken, "tried": [*guard.tried]}


def guarded(comm: Comm, fn: Callable[..., Any], *args: Any) -> Any:
    """`fn(comm, *args)` on a rank, under a guard of its own."""
    Guard()
    return fn(comm, *args)


def _launch(guard: Guard) -> Callable[..., list[Any]]:
    def launch(fn: Callable[..., Any], size: int, *args: Any) -> list[Any]:
        with guard.opened():
            return launched(guarded, size, fn, *args)

    return launch


def _of(found: Checked) -> dict[str, JSON]:
    lines: list[JSON] = [[line.name, line.holds, line.why] for line in found.lines]
    open_ = any(line.holds is None for line in found.lines) and not found.failed
    verdict = "not yet" if found.not_yet else "passed" if found.passed else "not judged" if open_ else "not passed"
    return {"verdict": verdict, "lines": lines}


def _names(source: str, name: str) -> bool:
    return bool(re.search(rf"\b{re.escape(name)}\b", source))


def _by_face(exercise: str) -> ast.expr:
    return ast.Name(EXERCISES[exercise].face.split("(")[0], ast.Load(), lineno=1, col_offset=0)


def _told(error: BaseException) -> str:
    at = place.words(place.of_traceback(error.__traceback__, print))  # no function of the learner's is at hand
    return f"{type(error).__name__}: {error}{f' ({at})' if at else ''}"


def main(arguments: Sequence[str]) -> None:
    """Grade, and leave the answer whole or not at all; threads that a learner's code left do not hold the end up."""
    notebook, exercise, seed, real, answer = arguments
    os.chdir(Path(answer).parent)
    for what, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, FILE_BYTES)):
        resource.setrlimit(what, (most, most))
    found = graded(Path(notebook), exercise, int(seed), real == "real", Guard())
    Path(f"{answer}.part").write_text(json.dumps(found), encoding="utf-8")
    os.replace(f"{answer}.part", answer)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
