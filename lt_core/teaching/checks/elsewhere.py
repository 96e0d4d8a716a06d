"""The same cases on real processes, in one launch: whatever holds only because threads share a memory ends here."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

from lt_core.base.errors import RankError
from lt_core.comm.comm import Comm
from lt_core.teaching.checks import place
from lt_core.teaching.checks.attempt import Job, Stopped, attempt
from lt_core.teaching.checks.exercise import Case, Outcome, Run, Trouble

WHOLE_S, DEAD_S = 6.0, 8.0  # a rank that works longer is interrupted; one that cannot be is ended


class Launch(Protocol):
    """What `lt_core.launch` does."""

    def __call__(self, fn: Callable[..., Any], size: int, *args: Any) -> list[Any]:
        """The results of `fn(comm, *args)` by rank."""
        ...


class Stumbled(Exception):
    """A rank's trouble, and in which case, on its way to the process that asked."""

    def __init__(self, trouble: Trouble, case: Case) -> None:
        super().__init__(trouble, case)
        self.trouble, self.case = trouble, case


def launched(fn: Callable[..., Any], size: int, *args: Any) -> list[Any]:
    """The launch that everybody has."""
    from lt_core.comm.launch import launch

    return launch(fn, size, *args)


def runs(launch: Launch, job: Job, cases: Sequence[Case]) -> tuple[str, list[Run]]:
    """The back end, and what came of the cases on it. A rank's trouble ends them all: then its run is the only one.

    Errors: those of `launch` that are no rank's.
    """
    try:
        by_rank = launch(on_rank, max(case.size for case in cases), job, tuple(cases))
    except RankError as error:
        cause = error.__cause__
        if not isinstance(cause, Stumbled):  # the process ended
            cause = Stumbled(Trouble(error.rank, error.kind, error.message), cases[0])
        found = cause.trouble._replace(place=place.brought_back(cause.trouble.place, job.fn))
        return "", [Run(cause.case, cause.case.given(job.seed), [Outcome(trouble=found)])]
    outcomes = [mine for _, mine in by_rank]
    made = [Run(c, c.given(job.seed), [outcomes[r][k] for r in range(c.size)]) for k, c in enumerate(cases)]
    return by_rank[0][0], made


def on_rank(comm: Comm, job: Job, cases: Sequence[Case]) -> tuple[str, list[Outcome]]:
    """What one rank does: all cases, in groups of as many ranks as each needs; (back end, its outcomes by case)."""
    groups = {size: comm.subset(range(size)) for size in sorted({case.size for case in cases})}
    outcomes = []
    with ended_in_time():
        for case in cases:
            mine = attempt(groups[case.size], job, case) if comm.rank < case.size else Outcome()
            if mine.trouble:
                raise Stumbled(mine.trouble, case)
            outcomes.append(mine)
    return comm.backend, outcomes


@contextmanager
def ended_in_time() -> Iterator[None]:
    """Interrupt what takes too long in Python, and end the process where that does not help."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(f"it had not ended after {WHOLE_S:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, WHOLE_S)
    with open(os.devnull, "w") as nowhere:
        faulthandler.dump_traceback_later(DEAD_S, exit=True, file=nowhere)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
