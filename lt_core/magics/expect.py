"""An error that a cell is to show: `--expect ValueError` passes where that error came, and only there."""

from __future__ import annotations

import re

from lt_core.base.errors import RankError, UserError
from lt_core.comm.failure import UNDER
from lt_core.comm.group import ranks_text

RAISED = (RankError, SyntaxError)  # what a cell's own code can end a cell with


def came(expected: str, error: RankError | SyntaxError) -> str:
    """The expected error in one line; nothing where it is another one."""
    if not isinstance(error, RankError):
        told = f"{type(error).__name__}: {error.msg}" + f" (line {error.lineno} of the cell)" * bool(error.lineno)
        return f"as expected, no rank ran the cell: {told}" if expected in _kinds(error) else ""
    if expected != error.kind and expected not in _kinds(error.__cause__):
        return ""
    first, *_ = error.message.splitlines() or [""]
    who = "" if error.shared else f", {ranks_text(_alike(error))} failed first"
    return f"as expected{who}: {error.kind}: {first}{_line(error)}"


def missing(expected: str) -> UserError:
    """What is wrong with a cell that ran to its end although it was to fail."""
    return UserError("the cell ran to its end", "no error", f"{expected}, as --expect says", "without --expect")


def _kinds(error: BaseException | None) -> list[str]:
    """The names of an error's type, and of what that is a kind of."""
    return [] if error is None else [kind.__name__ for kind in type(error).__mro__]


def _alike(error: RankError) -> tuple[int, ...]:
    """The ranks that failed in the same words, which of them was first being chance."""
    words = re.escape(f"{error.kind}: {error.message}".replace("\n", UNDER))
    return tuple(sorted({error.rank, *map(int, re.findall(rf"^  rank (\d+): {words}$", error.details, re.MULTILINE))}))


def _line(error: RankError) -> str:
    found = re.match(r"(line \d+) of the cell: (.*)", error.details)
    return f" ({found[1]}: {found[2]})" if found else ""
