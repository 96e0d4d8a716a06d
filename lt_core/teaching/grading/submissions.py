"""Which notebooks of a folder are whose: `alice/20_all_reduce.ipynb`, `alice_20_all_reduce.ipynb`, and the like.

The lab is the number in the file's name. The learner is what stands before it, else the topmost folder, else `folder`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

LARGEST_BYTES = 50_000_000
NOT_THEIRS = {"solutions"}  # a folder that comes with the labs


class Submission(NamedTuple):
    """A learner's notebook of a lab, such as "20"."""

    learner: str
    lab: str
    path: Path


class PassedOver(NamedTuple):
    """A notebook that is not graded, and why."""

    path: Path
    why: str


def found(folder: Path, labs: Collection[str]) -> tuple[list[Submission], list[PassedOver]]:
    """The notebooks in a folder and below that belong to one of these labs, by learner; and those passed over."""
    inner = [path.relative_to(folder) for path in sorted(folder.rglob("*.ipynb"))]
    theirs = [p for p in inner if not any(part[0] == "." or part in NOT_THEIRS for part in p.parts[:-1])]
    each = [_of(folder, path, labs) for path in theirs]
    return sorted(e for e in each if isinstance(e, Submission)), [e for e in each if isinstance(e, PassedOver)]


def _of(folder: Path, inner: Path, labs: Collection[str]) -> Submission | PassedOver:
    path, known = folder / inner, "|".join(map(re.escape, sorted(labs)))
    named = re.fullmatch(rf"(.*?)[ _-]*(?<!\d)({known})_[^\W\d]\w*(?: ?\(\d+\))?", inner.stem)
    if not named:
        return PassedOver(path, f"its name is not that of a lab with exercises ({', '.join(sorted(labs))})")
    if path.is_symlink() or not path.is_file():
        return PassedOver(path, "it is no file")
    if path.stat().st_size > LARGEST_BYTES:
        return PassedOver(path, f"it has more than {LARGEST_BYTES:,} bytes")
    above = inner.parts[0] if len(inner.parts) > 1 else folder.resolve().name
    return Submission(named[1] or above, named[2], path)
