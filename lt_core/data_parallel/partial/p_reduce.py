"""P-Reduce: whoever is ready forms a group, and the group takes the mean of its models; no server, no round of all.

rank 0 F ==|--mean--| F ==|             group of 2: the first two that are ready
rank 1 F ==|--mean--| F ========|
rank 2 F ========|--mean of 2 and 0--|  the one that came first adds and divides, for the others wait anyway

Averaging moves no weight out of the sum over ranks: that sum changes by the ranks' own steps alone. In the end all
average once, so that there is one model; a rank that never comes is named then, when a deadline has passed.
Miao and others 2021.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from lt_core.base.action import Action, Op
from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.data_parallel.partial.rules import check_quorum
from lt_core.data_parallel.staleness import Use


class PartialReduce:
    """The policy: `workers` ranks, groups of `quorum`. gradients: how many are computed in all; then all average."""

    def __init__(self, workers: int, quorum: int, gradients: int | None = None) -> None:
        check_quorum(quorum, workers)
        if gradients is not None and (not isinstance(gradients, int) or gradients < 0):
            raise UserError("a run has so many gradients", gradients, "0 or more, or None for a run without end")
        self.size, self.quorum, self.gradients = workers, quorum, gradients
        self.groups: list[tuple[int, ...]] = []
        self._clock, self._computing = [0] * workers, set[int]()
        self._ready: list[int] = []
        self._steps: list[deque[Action]] = [deque() for _ in range(workers)]
        self._averaging: set[Action] = set()  # of groups that have formed, not over
        self._last = False  # whether the group of all has formed

    @property
    def closing(self) -> bool:
        """Whether no gradient is begun any more."""
        return self.gradients is not None and sum(self._clock) >= self.gradients

    def next(self, rank: int) -> Action | None:
        """A gradient, or this rank's part in its group's mean."""
        if self._steps[rank]:
            return self._steps[rank].popleft()
        if rank in self._ready or self.closing:
            return None
        self._computing.add(rank)
        self._clock[rank] += 1
        return Action(Op.F, len(self.groups), self._clock[rank] - 1, rank)

    def done(self, action: Action) -> None:
        """Who has computed is ready; enough of them are a group."""
        self._averaging.discard(action)
        if action.op is Op.F:
            self._computing.remove(action.rank)
            self._ready.append(action.rank)
            if len(self._ready) >= self.quorum:
                self._form(self._ready[: self.quorum])
        if self.closing and not self._computing and not self._averaging and not self._last:
            self._last = True
            self._form(range(self.size))

    def _form(self, ranks: Iterable[int]) -> None:
        first, *others = group = tuple(ranks)
        number = len(self.groups)
        self.groups.append(group)
        self._ready = [r for r in self._ready if r not in group]
        adds = [Action(Op.ADD, 0, number, first, r) for r in others]
        sends = [Action(Op.SEND, 0, number, first, r) for r in others]
        self._steps[first].extend([*adds, Action(Op.U, 0, number, first), *sends])
        for r in others:
            self._steps[r].extend([Action(Op.SEND, 0, number, r, first), Action(Op.COPY, 0, number, r, first)])
        self._averaging.update(a for r in group for a in self._steps[r])


def uses(lanes: Iterable[Sequence[Action]]) -> list[Use]:
    """Of each gradient: how many groups had formed when it was begun (`read`), and the group it went into (`written`,
    counted from 1); `server` is the rank that took the mean."""
    found = []
    for lane in lanes:
        begun: Action | None = None
        for a in lane:
            if a.op is Op.F:
                begun = a
            elif begun is not None and a.op in (Op.U, Op.SEND):
                first = a.rank if a.op is Op.U else a.peer
                found.append(Use(begun.rank, begun.batch, first, begun.unit, a.batch + 1, a.batch + 1, a))
                begun = None
    return found


def groups(schedule: Schedule) -> list[tuple[int, ...]]:
    """The groups that a run formed, in order, each with its first rank first."""
    found: dict[int, list[int]] = {}
    for a in schedule.needs:
        if a.op is Op.ADD:
            found.setdefault(a.batch, [a.rank]).append(a.peer)
    return [tuple(found[number]) for number in sorted(found)]
