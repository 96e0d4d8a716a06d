"""What a command prints: sentences, tables and errors, on a terminal of any width and in a pipe.

On a terminal rich draws (and minds NO_COLOR and COLUMNS); in a pipe there is the same text without colour or frames.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from lt_core.base.errors import Aborted, Deadline, RankError, UserError


def console(stderr: bool = False) -> Console:
    """Where a command writes: nothing is coloured by guess, and markup in data stays text."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def table(out: Console, *columns: str) -> Table:
    """An empty table; a column whose name begins with `>` holds numbers, to the right."""
    made = Table(box=box.SIMPLE_HEAD if out.is_terminal else None, pad_edge=False)
    for name in columns:
        made.add_column(name.removeprefix(">"), justify="right" if name.startswith(">") else "left", overflow="fold")
    return made


def say(out: Console, text: str, style: str = "") -> None:
    """One text as it stands: paths and drawings are neither wrapped nor cut."""
    out.print(text, style=style, soft_wrap=True)


@contextmanager
def failures(command: str) -> Iterator[None]:
    """Inside it an error of this package, or of the system's files, ends the command with its text and code 1."""
    try:
        yield
    except (UserError, RankError, Deadline, Aborted, OSError) as error:
        kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
        say(console(stderr=True), f"ltlab {command}: {kind}{error}", style="bold red")
        raise typer.Exit(1) from error


def in_width(grid: str, width: int) -> str:
    """A schedule's grid in blocks of as many columns as fit, each with the ranks at its left."""
    rows = [line.split() for line in grid.splitlines()]
    heads, cells = [row[0] for row in rows], [row[1:] for row in rows]
    columns = [[row[k] for row in cells] for k in range(max(map(len, cells), default=0))]
    blocks: list[list[str]] = []
    for number, column in enumerate(columns):
        shown = [str(number), *column]
        wide = max(map(len, shown))
        if not blocks or len(blocks[-1][0]) + 1 + wide > width:
            blocks.append([" " * len(heads[0]), *heads])
        blocks[-1] = [f"{line} {cell.ljust(wide)}" for line, cell in zip(blocks[-1], shown, strict=True)]
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks) or grid
