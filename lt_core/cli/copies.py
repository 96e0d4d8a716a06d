"""Copies that never harm what is there: whole or not at all, under a name that nobody has.

A file is written under a hidden name and then linked to its own, which fails where that name is taken. So neither a
second process, nor a full disk, nor an end in the middle leaves half a file or takes one away.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import secrets
import time
from datetime import date
from pathlib import Path

PART = ".part"
STALE_S = 60.0  # what is older was left by a copy that was ended


def copy_new(source: Path, to: Path, mode: int = 0o666) -> bool:
    """Copy a file to a name that is free; whether it was. Errors: those of the file system."""
    if os.path.lexists(to):
        return False
    part = to.with_name(f".{to.name}.{secrets.token_hex(4)}{PART}")
    try:
        _write(part, source.read_bytes(), mode)
        move(part, to)
    except FileExistsError:  # somebody was quicker
        return False
    finally:
        part.unlink(missing_ok=True)
    return True


def move(source: Path, to: Path) -> None:
    """Give a file another name. Errors: FileExistsError where that is taken."""
    try:
        os.link(source, to, follow_symlinks=False)
    except (FileExistsError, FileNotFoundError):
        raise
    except OSError:  # a disk without links: take the name first, then put the file there
        os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        try:
            os.replace(source, to)
        except OSError:
            to.unlink()
            raise
    else:
        source.unlink()


def aside(path: Path, today: date) -> Path:
    """Rename `lab.ipynb` to `lab.2026-11-29.ipynb`, or `lab.2026-11-29-2.ipynb` and so on, and return where it is."""
    for count in itertools.count(1):
        to = path.with_name(f"{path.stem}.{today.isoformat()}{f'-{count}' * (count > 1)}{path.suffix}")
        if not os.path.lexists(to):
            try:
                move(path, to)
            except FileExistsError:
                continue
            return to
    raise AssertionError("numbers do not end")


def sweep(folder: Path) -> None:
    """Remove what copies that were ended have left."""
    for part in folder.glob(f".*{PART}"):
        with contextlib.suppress(FileNotFoundError):  # another process sweeps, too
            if time.time() - part.stat().st_mtime > STALE_S:
                part.unlink()


def _write(path: Path, content: bytes, mode: int) -> None:
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
