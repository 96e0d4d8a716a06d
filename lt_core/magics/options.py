"""The line of `%%torchrun` in words: what may stand there, what it means, what is wrong with it."""

from __future__ import annotations

import re
import shlex
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import lru_cache
from keyword import iskeyword
from typing import Any, NamedTuple, TypeVar

from IPython.core.error import UsageError
from IPython.core.magic_arguments import argument, magic_arguments

from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.comm.launch import BACKENDS as LAUNCHED
from lt_core.comm.launch import LONGEST_S
from lt_core.magics.scope import FOUND, expanded

DIGITS = r"\d{1,18}"  # of a number that fits a machine's
Magic = TypeVar("Magic", bound=Callable[..., object])
BACKENDS = tuple(name for name in LAUNCHED if name != "threads")  # a group's ranks are processes
COMMANDS = ("status", "restart", "stop")
ARGUMENTS: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = (
    (("-n",), {"metavar": "RANKS", "help": "how many ranks; left out: as many as there are"}),
    (("--ranks",), {"metavar": "LIST", "help": "which of them run this cell, as 0,2-3; left out: all"}),
    (("--backend",), {"default": "auto", "help": "gloo, shared_memory, nccl, or auto: nccl if each has a GPU"}),
    (("--timeout",), {"metavar": "S", "default": "60", "help": "how long one wait in a collective may last"}),
    (("--in",), {"dest": "given", "metavar": "NAMES", "help": "copy these kernel variables to every rank: x,f"}),
    (("--out",), {"dest": "wanted", "metavar": "NAMES", "help": "bring these back, each as a list by rank"}),
    (("--fresh",), {"action": "store_true", "help": "run the cell in new processes, which end with it"}),
    (("--expect",), {"metavar": "ERROR", "help": "the cell is to fail with this error: ValueError"}),
    (("--save",), {"metavar": "FILE", "help": "write the cell as a script, too"}),
    (("--shape",), {"metavar": "WIRE", "help": 'slow the wires down, as "1 Gbit/s 0.1 ms"'}),
    (("command",), {"nargs": "?", "help": "of %%torchrun alone: status, restart or stop"}),
    (("--all",), {"action": "store_true", "help": "of stop: the groups of all your notebooks"}),
)


class Options(NamedTuple):
    """What the line asks for; `size` 0 and `ranks` None where it leaves them open, or where no ranks are."""

    size: int = 0
    ranks: tuple[int, ...] | None = None
    backend: str = "auto"
    timeout_s: float = 60.0
    given: tuple[str, ...] = ()
    wanted: tuple[str, ...] = ()
    fresh: bool = False
    expect: str = ""
    save: str = ""
    shape: Wire | None = None
    command: str = ""
    everywhere: bool = False


def arguments(magic: Magic) -> Magic:
    """Decorate a magic with the arguments, so that `%%torchrun?` explains them."""
    for flags, described in reversed(ARGUMENTS):
        magic = argument(*flags, **described)(magic)  # type: ignore[no-untyped-call]
    return magic_arguments()(magic)  # type: ignore[no-untyped-call,no-any-return]


def read(magic: Any, line: str, names: Mapping[str, object], standing: int = 0) -> Options:
    """What a magic's line says to as many ranks as stand; `{x}` and `$x` in it stand for the value of x. Errors:
    `UserError`."""
    try:
        options, spans = _options(magic, tuple(expanded(word, names) for word in _words(line)))
        return options._replace(ranks=_ranks(spans, options.size or standing))
    except UsageError as error:  # IPython would print it, and who runs notebooks would see no error
        raise UserError(f"%torchrun {line.strip()}: {error}", attempt="%torchrun?") from None


@lru_cache  # cell after cell has the same line, and to parse it takes a good part of a short cell's time
def _options(magic: Any, words: tuple[str, ...]) -> tuple[Options, tuple[range, ...]]:
    said = magic.parser.parse_args(list(words))
    spans = _spans(said.ranks) if said.ranks is not None else ()
    options = Options(
        size=_size(said.n),
        backend=_backend(said.backend),
        timeout_s=_seconds(said.timeout),
        given=_names("--in", said.given, FOUND),
        wanted=_names("--out", said.wanted),
        fresh=said.fresh,
        expect=said.expect or "",
        save=said.save or "",
        shape=Wire.parse(said.shape, "shaped") if said.shape else None,
        command=_command(said),
        everywhere=said.all,
    )
    return options, spans


@lru_cache
def _words(line: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(line))
    except ValueError as error:
        raise UserError(f"%torchrun {line.strip()}: {error}", attempt="quotes in pairs") from None


def _size(text: str | None) -> int:
    if text is None:
        return 0
    if not re.fullmatch(DIGITS, text) or int(text) < 1:
        raise UserError("-n is no number of ranks", repr(text), "at least 1", "-n 4")
    return int(text)


def _spans(text: str) -> tuple[range, ...]:
    parts = [re.fullmatch(rf"({DIGITS})(?:-({DIGITS}))?", part.strip()) for part in text.split(",")]
    spans = [range(int(part[1]), int(part[2] or part[1]) + 1) for part in parts if part]
    if None in parts or not all(spans):
        raise UserError("--ranks is no list of ranks", repr(text), "numbers and spans", "--ranks 0,2-3")
    return tuple(spans)


def _ranks(spans: tuple[range, ...], size: int) -> tuple[int, ...] | None:
    """The ranks, of as many as there are: none is named before that is known, a span may be longer than memory."""
    if not spans or not size:
        return None
    last = max(span[-1] for span in spans)
    if last >= size:
        there = f"0-{size - 1}" if size > 1 else "0"
        raise UserError("--ranks names a rank that is not there", last, f"some of {there}", f"--ranks {there}")
    return tuple(sorted({rank for span in spans for rank in span}))


def _seconds(text: str) -> float:
    if not re.fullmatch(r"\d*\.?\d+", text) or not 0 < float(text) <= LONGEST_S:
        raise UserError("--timeout is no time", repr(text), f"seconds, above 0, {LONGEST_S} at most", "--timeout 60")
    return float(text)


def _backend(text: str) -> str:
    if text not in BACKENDS:
        raise UserError("--backend is none of those that processes have", repr(text), ", ".join(BACKENDS))
    return text


def _names(option: str, text: str | None, taken: tuple[str, ...] = ()) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",")) if text is not None else ()
    for name in names:
        if not name.isidentifier() or iskeyword(name):
            raise UserError(f"{option} takes names of variables", repr(name), attempt=f"{option} x,y")
        if name in taken:
            raise UserError(f"{option} {name}: a cell has its own {name}", attempt="another name")
    return names


def _command(said: Namespace) -> str:
    command = said.command or ""
    if command and command not in COMMANDS:
        raise UserError("%torchrun does not know that", repr(command), ", ".join(COMMANDS))
    if said.all and command != "stop":
        raise UserError("--all belongs to stop", attempt="%torchrun stop --all")
    return command
