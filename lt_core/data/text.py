"""Text to continue, byte by byte: the standard library's own sources, wherever Python is, or a folder of yours.

The chosen files are joined in order, in one normal form (ASCII, no blanks at the end of a line). Another Python has
other sources: `pinned` says whether these are the bytes that figures were made with.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from lt_core.base.errors import UserError

FILES = (  # prose and code by many hands
    "argparse bisect calendar colorsys contextlib copy csv difflib fractions functools graphlib heapq optparse pprint "
    "queue random sched shlex statistics string textwrap timeit"
).split()
PINNED = "1daca2ced6bb37e281d94bb7de90fd28ab6320c473e7bde508379c9dc13b059c"  # of Python 3.11.7


class Text(NamedTuple):
    """Bytes (n,), uint8; the SHA-256 of them; whether they are those that this project's figures were made with."""

    data: Tensor
    digest: str
    pinned: bool


def text(folder: str | Path | None = None, suffixes: Iterable[str] = (".py", ".md", ".txt")) -> Text:
    """The standard library's text, or that of all files in `folder` and below whose names end so, in their order.

    Errors: a folder without such a file; suffixes that are one text.
    """
    if isinstance(suffixes, str):
        raise UserError("names end in one of several", repr(suffixes), "suffixes", f"({suffixes!r},)")
    endings = tuple(suffixes)
    if folder is None:
        home = Path(sysconfig.get_path("stdlib"))
        paths = [home / f"{name}.py" for name in FILES if (home / f"{name}.py").is_file()]
    else:
        paths = sorted(p for p in Path(folder).rglob("*") if p.is_file() and p.suffix in endings)
    if not paths:
        raise UserError(f"there is no text in {folder or home}", expected=f"files ending in {', '.join(endings)}")
    joined = b"\n".join(normal(p.read_bytes()) for p in paths)
    digest = sha256(joined).hexdigest()
    return Text(torch.frombuffer(bytearray(joined), dtype=torch.uint8), digest, digest == PINNED)


def normal(source: bytes) -> bytes:
    """UTF-8 as ASCII (`?` for what it has not), its lines ended by one line feed and by no blanks."""
    lines = source.decode("utf-8", "replace").splitlines()
    return "".join(f"{line.expandtabs(4).rstrip()}\n" for line in lines).encode("ascii", "replace")


def windows(data: Tensor, context: int, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Pieces of the text, drawn at random, and what follows each of their bytes: two (count, context), int64.

    Errors: a text that is shorter than one piece and the byte after it.
    """
    if data.numel() <= context:
        raise UserError(f"{data.numel()} bytes are too few", expected=f"more than the context of {context}")
    starts = torch.randint(data.numel() - context, (count, 1), generator=generator)
    pieces = data[starts + torch.arange(context + 1)].long()
    return pieces[:, :-1], pieces[:, 1:]


def held_out(data: Tensor, share: float = 0.1) -> tuple[Tensor, Tensor]:
    """The text to learn from, and its end, which nobody learns from."""
    cut = round(data.numel() * (1 - share))
    return data[:cut], data[cut:]
