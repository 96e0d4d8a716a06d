"""`ltlab bench`: run the benchmarks of this checkout, a JSON line a row, and write their tables into its README."""

from __future__ import annotations

import importlib
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from lt_core.base.errors import UserError
from lt_core.base.units import seconds_text
from lt_core.cli import page

CHECKOUT = Path(__file__).resolve().parents[2]
ROWS = "rows"  # benchmarks/rows.py: what a row is, how rows are printed, and their table
LIMIT_S = 600.0  # of one benchmark


def bench(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Such as all_reduce; all if none.")] = None,
) -> None:
    """Compare with the tools that people use, and write the tables.

    Prints a JSON line a row, then writes that benchmark's table anew in benchmarks/README.md of this checkout. Each may
    take up to 10 minutes, on a machine that does nothing else. The peers come with: make bench-env
    """
    with page.failures("bench"):
        chosen = choose(names or [], found(CHECKOUT))
        sys.path.insert(0, str(CHECKOUT))
        for name in chosen:
            run(name, CHECKOUT / "benchmarks" / "README.md")


def found(checkout: Path) -> list[str]:
    """The benchmarks of a checkout. Errors: `UserError` where this package does not stand in one."""
    folder = checkout / "benchmarks"
    if not (folder / f"{ROWS}.py").is_file():
        what = "benchmarks belong to the repository, not to the installed package"
        raise UserError(what, "no benchmarks/ beside it", attempt="clone it, and there: make bench-env, ltlab bench")
    return sorted(p.stem for p in folder.glob("*.py") if p.stem != ROWS and not p.stem.startswith("_"))


def choose(names: Sequence[str], there: Sequence[str]) -> list[str]:
    """Those that were named, each once, or all. A name that is not there is a wrong use."""
    for name in names:
        if name not in there:
            raise typer.BadParameter(f"there is no benchmark {name!r}; there are: {', '.join(there) or 'none'}")
    return list(dict.fromkeys(names)) or list(there)


def run(name: str, tables: Path) -> None:
    """Print the rows of one benchmark as they come, then write its table. Errors: a missing peer, too much time."""
    begun_s = time.monotonic()
    try:
        rows, module = (importlib.import_module(f"benchmarks.{part}") for part in (ROWS, name))
    except ModuleNotFoundError as error:
        what = f"benchmark {name} needs {error.name}, which is not installed"
        raise UserError(what, attempt="make bench-env") from error
    with within(name, LIMIT_S):
        done = rows.printed(module.rows())
    rows.write(tables, name, done)
    took = seconds_text(time.monotonic() - begun_s)
    page.say(page.console(stderr=True), f"{name}: {len(done)} rows in {took}; their table is in {tables}")


@contextmanager
def within(name: str, limit_s: float) -> Iterator[None]:
    """Inside it whatever runs or waits in the main thread ends with `UserError` once the limit is over."""

    def stop(*_: object) -> None:
        what = f"benchmark {name} takes too long"
        raise UserError(what, f"more than {limit_s:g} s", "under 10 minutes", "fewer cases, or smaller ones")

    handler, timer = signal.signal(signal.SIGALRM, stop), signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)
