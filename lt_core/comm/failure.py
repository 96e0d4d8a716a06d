"""Who failed first: errors and deaths of ranks, put in order, and told as one `RankError`.

An own error or a death comes before every consequence ("connection closed by peer", `Aborted`), whenever it is seen;
among equals the clock decides: `time.monotonic` is one clock for all processes of a host.
"""

from __future__ import annotations

import linecache
import os
import pickle
import re
import signal
import textwrap
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from lt_core.base.errors import Aborted, RankError

CONSEQUENCE = re.compile(
    "closed by peer|connection reset|broken pipe|socket closed|pair closure|connection refused", re.IGNORECASE
)
UNDER = "\n    "  # how later lines of a message stand in the list of what followed
OWN = str(Path(__file__).parent)
Place = tuple[str, int, str, str]  # file, line number, function, the line


class Told(NamedTuple):
    """One exception as plain data: its type's name, its text, its place, and how it is linked to the one before."""

    kind: str
    text: str
    places: list[Place]
    link: str = ""


class Failure(NamedTuple):
    """How one rank failed; `told` goes from the first exception to the last."""

    rank: int
    at_s: float
    kind: str
    message: str
    consequence: bool = False
    told: tuple[Told, ...] = ()
    pickled: bytes = b""


def of_exception(rank: int, at_s: float, error: BaseException) -> Failure:
    """The failure of a rank whose function raised `error` at `at_s`."""
    told = tuple(_told(error))
    return Failure(rank, at_s, type(error).__name__, text(error), is_consequence(error), told, _pickled(error))


def of_death(rank: int, at_s: float, exit_code: int | None, last_words: str) -> Failure:
    """The failure of a rank whose process ended; `exit_code` is minus a signal's number where one ended it."""
    how = "nobody knows how" if exit_code is None else f"exit code {exit_code}"
    if exit_code is not None and exit_code < 0:
        how = f"signal {-exit_code} ({_signal(-exit_code)})"
    return Failure(rank, at_s, "died", f"{how}{f'; its last line: {last_words}' if last_words else ''}")


def _signal(number: int) -> str:
    names = {int(known): known.name for known in signal.Signals}  # only two of the thirty real-time ones
    return names.get(number, "real-time")


def exit_codes(log: str) -> dict[int, int]:
    """What torchrun's log says of ranks that ended: exit code by rank, minus a signal's number where one ended it."""
    return {int(rank): int(code) for code, rank in re.findall(r"exitcode: (-?\d+)\) local_rank: (\d+)", log)}


def first(failures: Sequence[Failure]) -> Failure:
    """The culprit."""
    return min(failures, key=lambda failure: (failure.consequence, failure.at_s))


def error(failures: Sequence[Failure], note: str = "") -> RankError:
    """The one exception that the launching process raises, the culprit's own as its cause."""
    culprit = first(failures)
    others = sorted((f for f in failures if f is not culprit), key=_place)
    lines = [f"  rank {f.rank}: {f.kind}: {f.message}".replace("\n", UNDER) for f in others]
    after = ["what followed:", *lines] if lines else []
    details = "\n".join(part for part in (_traceback(culprit), *after, note) if part)
    raised = RankError(culprit.rank, culprit.kind, culprit.message, details)
    raised.__cause__ = _unpickled(culprit.pickled)
    return raised


def _place(failure: Failure) -> tuple[bool, float]:
    """Own errors as they came; of consequences, whose moments are chance, by rank."""
    return failure.consequence, failure.rank if failure.consequence else failure.at_s


def text(error: BaseException) -> str:
    """Its words."""
    try:
        return str(error)
    except Exception:  # a user's exception may fail at its own words; Python's traceback says it so, too
        return "<exception str() failed>"


def is_consequence(error: BaseException) -> bool:
    """Whether it only says that another rank has failed."""
    chain = _chain(error)
    return any(isinstance(e, Aborted | ConnectionError) or CONSEQUENCE.search(text(e)) for e, _ in chain)


def _chain(error: BaseException) -> list[tuple[BaseException, str]]:
    """The exceptions that led to `error`, the first one first, each with how the next is linked to it."""
    found = [(error, "")]
    while True:
        last = found[0][0]
        before, link = last.__cause__, "The above exception was the direct cause of the following exception:"
        if before is None and not last.__suppress_context__:
            before, link = last.__context__, "During handling of the above exception, another exception occurred:"
        if before is None or before in [e for e, _ in found]:
            return found
        found.insert(0, (before, link))


def _told(error: BaseException) -> list[Told]:
    told = []
    for one, link in _chain(error):
        frames = traceback.extract_tb(one.__traceback__)
        places = [(f.filename, f.lineno or 0, f.name, f.line or "") for f in frames if not _ours(f.filename)]
        told.append(Told(type(one).__name__, _last_lines(one), places, link))
    return told


def _last_lines(error: BaseException) -> str:
    """What stands below a traceback; of a group also what is in it."""
    inside = "".join(map(_last_lines, error.exceptions)) if isinstance(error, BaseExceptionGroup) else ""
    return "".join(traceback.format_exception_only(error)) + textwrap.indent(inside, "  ")


def _ours(filename: str) -> bool:
    return os.path.dirname(filename).startswith(OWN)


def _traceback(failure: Failure) -> str:
    parts = []
    for told in failure.told:
        lines = [(f, n, name, line or linecache.getline(f, n).strip()) for f, n, name, line in told.places]
        parts += ["Traceback (most recent call last):\n", *traceback.format_list(lines)] if lines else []
        parts += [told.text, f"\n{told.link}\n\n" if told.link else ""]
    return "".join(parts).rstrip()


def _pickled(error: BaseException) -> bytes:
    import cloudpickle

    try:
        data: bytes = cloudpickle.dumps(error)
        pickle.loads(data)
    except Exception:  # whatever a user's exception raises there, its text still comes across
        return b""
    return data


def _unpickled(data: bytes) -> BaseException | None:
    try:
        return pickle.loads(data) if data else None
    except Exception:  # its class may be one that only the rank could import
        return None
