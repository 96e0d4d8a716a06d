"""A learner's own folder: each lab copied once, and never written over.

my_labs/20_all_reduce.ipynb              the learner's: a lab that has changed since is told of, not replaced
my_labs/20_all_reduce.2026-11-29.ipynb   what a reset moved aside
my_labs/README.md, solutions/*.ipynb     read-only, and kept as the labs have them; an edited one is moved aside
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import typer

from lt_core.base.errors import UserError
from lt_core.cli import copies

READ_ONLY = 0o444
RECORD = ".copied.json"  # what the read-only files were when they were copied
OWN_NAME = re.compile(r"\d\d_\w+\.ipynb")  # a lab's name, as no copy of a copy has it


def prepare(labs: Path, mine: Path, today: date) -> Iterator[str]:
    """Copy what is missing in `mine`, and yield a line for each thing a learner should know.

    Errors: `UserError` naming the folder, and what is wrong with it.
    """
    make(mine)
    new = [lab.name for lab in sorted(labs.glob("*.ipynb")) if copies.copy_new(lab, mine / lab.name)]
    if new:
        yield f"new in {mine}: {', '.join(new)}"
    yield from refreshed(labs, mine, today)
    for own in sorted(mine.glob("*.ipynb")):
        if own.name not in new and (line := difference(labs / own.name, own)):
            yield line


def make(mine: Path) -> None:
    """The folder and its place for solutions. Errors: `UserError` where it cannot be."""
    for folder in (mine, mine / "solutions"):
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder} is a file", "", "a folder for your labs", "move it away, or --folder DIR")
        folder.mkdir(parents=True, exist_ok=True)
        copies.sweep(folder)


def find(labs: Path, name: str) -> Path:
    """The lab that is called 20, 20_all_reduce, or tour. A name that is none is a wrong use."""
    wanted = name.removesuffix(".ipynb").rjust(2, "0")
    there = sorted(labs.glob("*.ipynb"))
    found = [lab for lab in there if wanted in (lab.stem, lab.stem.split("_")[0])]
    if not found:
        raise typer.BadParameter(f"there is no lab {name!r}; there are: {', '.join(lab.stem for lab in there)}")
    return found[0]


def reset(lab: Path, mine: Path, today: date) -> str:
    """Give a lab back as it is now; what the learner has of it gets a name with the date. A line says so."""
    make(mine)
    own = mine / lab.name
    kept = copies.aside(own, today) if os.path.lexists(own) else None
    copies.copy_new(lab, own)
    if not kept:
        return f"{lab.name} is fresh"
    return f"{lab.name} is fresh; what you had is in {kept}. Open in JupyterLab? File > Reload Notebook from Disk"


def difference(lab: Path, own: Path) -> str:
    """In one line, what the learner should know of a copy beside the lab as it is now; "" where they agree."""
    had, is_lab = stamp(own), lab.exists()
    fresh = f"ltlab lab --reset {own.stem.split('_')[0]} moves it aside and gives the lab anew"
    if is_lab and had is None:
        return f"{own.name} cannot be read as a notebook. {fresh}"
    if is_lab and had and not had.items() & (stamp(lab) or {}).items():
        return f"{own.name} has changed since you got it; yours stays as it is. {fresh}"
    if not is_lab and had and OWN_NAME.fullmatch(own.name):
        return f"{own.name} is no longer one of the labs; your copy stays"
    return ""


def stamp(notebook: Path) -> dict[str, str] | None:
    """The digests that a notebook bears: of its whole source, and of the cells that a learner got. None if it is no
    notebook. One of them is enough: where teachers' cells or a solution changed, nothing has for a learner."""
    try:
        metadata = json.loads(notebook.read_text(encoding="utf-8"))["metadata"]
        return {str(what): str(digest) for what, digest in metadata.get("lt_lab", {}).items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def refreshed(labs: Path, mine: Path, today: date) -> Iterator[str]:
    """Bring the read-only files to what the labs have, and yield a line for each that the learner had edited."""
    record = mine / RECORD
    known = _known(record)
    now: dict[str, str] = {}
    for source in [*labs.glob("README.md"), *sorted(labs.glob("solutions/*.ipynb"))]:
        name = source.relative_to(labs).as_posix()
        own, wanted = mine / name, digest(source)
        had = digest(own) if own.is_file() else ""
        if had and had not in (wanted, known.get(name)):
            yield f"you had edited {name}: that is now in {copies.aside(own, today).name}, and the new one in its place"
        elif had and had != wanted:
            own.unlink()
        copies.copy_new(source, own, READ_ONLY)
        now[name] = wanted
    if now != known:
        record.write_text(json.dumps(now), encoding="utf-8")


def digest(path: Path) -> str:
    """What identifies a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _known(record: Path) -> dict[str, str]:
    try:
        return {str(k): str(v) for k, v in json.loads(record.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, AttributeError):
        return {}  # then a file that differs counts as edited, and is kept
