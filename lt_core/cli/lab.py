"""`ltlab lab`: JupyterLab on a learner's own copies of the labs, which no update touches; `--reset` gives one back."""

from __future__ import annotations

import difflib
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Annotated

import typer

from lt_core.base.errors import UserError
from lt_core.cli import my_labs, page

CHECKOUT = Path(__file__).resolve().parents[2]
PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}


def lab(
    context: typer.Context,
    reset: Annotated[
        list[str] | None, typer.Option(metavar="LAB", help="Move your copy of a lab aside, and get it fresh.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where your copies are; my_labs in the checkout if not given.")
    ] = None,
) -> None:
    """Open your labs in JupyterLab.

    The labs are copied once, and your copies are never written over. Further words go to JupyterLab:
    ltlab lab --no-browser --port 8899
    """
    if reset and context.args:
        raise typer.BadParameter(f"--reset opens nothing, so there is no use for {' '.join(context.args)}")
    _refuse_slips(context.args)
    with page.failures("lab"):
        labs, mine = labs_of(CHECKOUT), (folder or CHECKOUT / "my_labs").absolute()
        _refuse_unknown(context.args, labs, mine)
        out, today = page.console(), date.today()
        with told(mine):
            chosen = [my_labs.find(labs, name) for name in reset or ()]
            said = (my_labs.reset(one, mine, today) for one in chosen)
            for line in said if reset else my_labs.prepare(labs, mine, today):
                page.say(out, line, style="bold")  # JupyterLab has much to say after it
        if not reset:
            page.say(out, f"JupyterLab opens {mine}; solutions/ there holds every lab solved, to read")
            start(labs, mine, context.args)


def _refuse_slips(words: list[str]) -> None:
    """JupyterLab passes over what it does not know, so a slip in one of our own options would go unseen."""
    for word in words:
        for meant in difflib.get_close_matches(word.split("=")[0], ("--reset", "--folder"), cutoff=0.8):
            raise typer.BadParameter(f"there is no {word}; did you mean {meant}?")


def _refuse_unknown(words: list[str], labs: Path, mine: Path) -> None:
    """JupyterLab would refuse it too, once the folder is made: a first word that is no option and not there to open."""
    if words and not words[0].startswith("-") and not any((place / words[0]).exists() for place in (mine, labs)):
        there = ", ".join(path.name for path in sorted(labs.glob("*.ipynb")))
        raise typer.BadParameter(f"there is no {words[0]} to open; there are: {there}")


@contextmanager
def told(folder: Path) -> Iterator[None]:
    """Inside it an error of the file system is a `UserError` that names the folder and what to do."""
    try:
        yield
    except OSError as error:
        where = error.filename2 or error.filename or folder
        what = f"the labs cannot be copied to {folder}"
        raise UserError(what, f"{error.strerror or error}: {where}", "a folder to write in", "--folder DIR") from error


def labs_of(checkout: Path) -> Path:
    """The labs of a checkout. Errors: `UserError` where this package does not stand in one."""
    labs = checkout / "labs"
    if not (labs / "settings").is_dir():
        what = "the labs belong to the repository, not to the installed package"
        raise UserError(what, "no labs/ beside it", attempt="clone it, and there: make lab")
    return labs


def start(labs: Path, mine: Path, options: list[str]) -> None:
    """Become JupyterLab, so that whoever ends this process ends it. Errors: it is not installed."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise UserError("JupyterLab is not installed here", sys.prefix, attempt="make lab")
    config = labs / "settings" / "jupyter_lab_config.py"
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    os.chdir(mine)  # the root of what JupyterLab shows
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-P", "-m", "jupyterlab", f"--config={config}", *options])
