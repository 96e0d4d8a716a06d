"""One policy for real ranks: each asks for its next action and tells when that is over; what happened is recorded.

rank 0   next -> 3F0   ... compute ...   done      next -> 4F1      One lock: a question is answered between two ends,
rank 1   next (the policy says: not yet) ......... -> 4F0  ...      never during one, exactly as on a virtual clock.

Ranks that are threads share it; ranks that are processes ask it through a proxy.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Generic, TypeVar

from lt_core.base.action import Action
from lt_core.base.errors import Aborted, Deadline, UserError
from lt_core.base.policy import Policy
from lt_core.base.schedule import Schedule
from lt_core.engine.record import Record

P = TypeVar("P", bound=Policy)
R = TypeVar("R")


class Referee(Generic[P]):
    """Gives actions until `until(policy)`, or until no rank can get one; `schedule()` is what happened.

    Once it is over, a rank still gets what ends a transfer which another rank was given already: then all may leave.
    deadline_s: how long a rank may wait for an action, or for the other end of its transfer, while nothing ends.
    """

    def __init__(self, policy: P, until: Callable[[P], bool], deadline_s: float = 60.0) -> None:
        self.policy, self.until, self.deadline_s = policy, until, deadline_s
        self._record = Record(policy)
        self._changed = threading.Condition()
        self._over = False
        self._refused: set[int] = set()  # ranks that got nothing since the last end
        self._came: set[int] = set()  # ranks that have asked at least once
        self._given: dict[int, Action] = {}
        self._open: dict[object, Action] = {}  # transfers of which one end was given
        self._half: dict[object, Action] = {}  # transfers of which one end is over
        self._reason = ""  # why all must stop
        self._last_s = perf_counter()

    def next(self, rank: int) -> Action | None:
        """What `rank` does now, as soon as there is something; None when it is over.

        Errors: what the policy or `until` raises; `Deadline`; and on the other ranks then `Aborted`.
        """
        since_s = perf_counter()
        with self._changed:
            self._came.add(rank)
            while True:
                self._check()
                over = self._failing(rank, partial(self.until, self.policy))
                self._over |= over or len(self._refused) == self.policy.size
                awaited = any(a.peer == rank for a in self._open.values())
                if self._over and not self._open:
                    self._changed.notify_all()
                    return None
                if (awaited or not self._over) and (a := self._failing(rank, partial(self._record.give, rank))):
                    return self._gave(rank, a)
                self._refused.add(rank)
                if self._over or len(self._refused) < self.policy.size:
                    self._wait(rank, since_s, "its next action")

    def _gave(self, rank: int, a: Action) -> Action:
        self._given[rank] = a
        if a.peer >= 0 and self._open.pop(a.transfer, None) is None:
            self._open[a.transfer] = a
            self._changed.notify_all()  # the other end's rank is awaited
        return a

    def done(self, action: Action) -> None:
        """`action` is over: the policy is told, and all who wait are asked again. Of a transfer both ends are over at
        once, so the first to say so waits for the other."""
        since_s = perf_counter()
        with self._changed:
            self._check()
            if self._given.get(action.rank) != action:
                raise UserError(f"{action} of rank {action.rank} is not what it was given", attempt="done(next(rank))")
            other = self._half.pop(action.transfer, None) if action.peer >= 0 else None
            if action.peer >= 0 and other is None:
                self._half[action.transfer] = action
                while self._half.get(action.transfer) is action:
                    self._wait(action.rank, since_s, f"the other end of {action}")
                    self._check()
                return
            for end in sorted(filter(None, (action, other)), key=lambda a: a.op.stream == "in"):
                self._failing(action.rank, partial(self._record.end, end))
                self._given.pop(end.rank)
            self._refused.clear()
            self._last_s = perf_counter()
            self._changed.notify_all()

    def abort(self, reason: str) -> None:
        """Every rank that waits or asks raises `Aborted(reason)`."""
        with self._changed:
            self._reason = self._reason or reason
            self._changed.notify_all()

    def schedule(self) -> Schedule:
        """What has happened so far; its `needs` stand in the order of the ends, which is the order to replay."""
        with self._changed:
            return self._record.schedule()

    def _check(self) -> None:
        if self._reason:
            raise Aborted(self._reason)

    def _wait(self, rank: int, since_s: float, what: str) -> None:
        left_s = max(since_s, self._last_s) + self.deadline_s - perf_counter()
        if left_s > 0:
            self._changed.wait(left_s)
            return
        others = [f"rank {r} is at {a}" for r, a in sorted(self._given.items()) if r != rank]
        others += [f"rank {r} has not come" for r in range(self.policy.size) if r not in self._came]
        error = Deadline(f"rank {rank} has waited {self.deadline_s:g} s for {what}: {', '.join(others) or 'all wait'}")
        self.abort(str(error))
        raise error

    def _failing(self, rank: int, call: Callable[[], R]) -> R:
        """An error of the policy, or of `until`, is the caller's; the others are told."""
        try:
            return call()
        except BaseException as error:
            self.abort(f"rank {rank} failed first: {type(error).__name__}: {error}")
            raise
