"""One rank calls the learner's function once, and what came of it is written down: value, messages, or the trouble."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lt_core.base.errors import Aborted, Deadline
from lt_core.base.work import Work
from lt_core.comm.comm import Comm, Ends
from lt_core.teaching.checks import place
from lt_core.teaching.checks.exercise import STILL_RUNNING, Case, Exercise, Outcome, Sent, Trouble
from lt_core.teaching.same import same_bits


class Stopped(BaseException):
    """Raised in a learner's function that does not end by itself. No `except Exception` holds it."""


class Job(NamedTuple):
    """What every rank needs: the exercise, the function, the seed."""

    exercise: Exercise
    fn: Callable[..., Any]
    seed: int


def attempt(comm: Comm, job: Job, case: Case) -> Outcome:
    """The outcome of one call on this rank; nothing that the function raises gets out."""
    given = _moved(case.given(job.seed)[comm.rank], comm.device)
    kept = _moved(given, comm.device, dense=True)
    noted, before = Noted(comm), comm.traffic.copy()
    try:
        value = job.exercise.call(job.fn, noted, given)
    except BaseException as error:
        return Outcome(trouble=trouble(comm.rank, error, job.fn))
    changed = isinstance(given, Tensor) and not same_bits(given, kept)
    back = value.detach().cpu() if isinstance(value, Tensor) else value
    sent, begins = tuple(noted.sent), place.of_function(job.fn)
    return Outcome(_own(back), changed, comm.traffic - before, sent, begins=begins)


def trouble(rank: int, error: BaseException, fn: Callable[..., Any]) -> Trouble:
    """An exception as plain data, with the learner's own line."""
    at = place.of_traceback(error.__traceback__, fn)
    if isinstance(error, Stopped):
        return Trouble(rank, STILL_RUNNING, str(error), at, hang=True)
    raised_here = at is not None and "NotImplementedError" in linecache.getline(at.file, at.line)
    unwritten = isinstance(error, NotImplementedError) and (raised_here or "your turn" in str(error))
    consequence, hang = isinstance(error, Aborted), isinstance(error, Deadline)
    return Trouble(rank, type(error).__name__, str(error), at, consequence, unwritten, hang)


class Noted:
    """The communicator that the learner's function gets: every verb is the inner one's, and each message is noted."""

    def __init__(self, inner: Comm) -> None:
        self._inner, self.sent = inner, list[Sent]()

    def exchange(self, sends: Ends, receives: Ends) -> None:
        """The inner one's."""
        self._inner.exchange(sends, receives)
        self._note(sends)

    def start(self, verb: str, *args: Any) -> Work:
        """The inner one's."""
        work = self._inner.start(verb, *args)
        if verb == "exchange":
            self._note(args[0])
        return work

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def _note(self, sends: Ends) -> None:
        for x, peer in sends:
            size = x.untyped_storage().nbytes() // max(1, x.element_size())
            self.sent.append(Sent(peer, x.numel(), int(x.storage_offset()), size))


def _moved(x: Any, device: torch.device, dense: bool = False) -> Any:
    """A tensor of its own on the device, with the strides it had unless `dense`; anything else as it is."""
    if not isinstance(x, Tensor):
        return x
    if dense:
        return x.clone(memory_format=torch.contiguous_format)
    room = torch.empty(_storage(x), dtype=x.dtype, device=device)
    return room.as_strided(x.size(), x.stride()).copy_(x)


def _storage(x: Tensor) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(x.size(), x.stride(), strict=True)) if x.numel() else 0


def _own(value: Any) -> Any:
    """The value, cut loose from what another rank could still write to."""
    if isinstance(value, Tensor):
        return value.clone()
    return [_own(v) for v in value] if isinstance(value, list) else value
