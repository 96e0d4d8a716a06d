"""What happens in which order, as plain data: the waist through which every technique passes.

lanes[r] is what rank r issues, in order, stream by stream; needs[a] is what must be finished before a. A SEND and the
ADD or COPY that takes it are one transfer; it starts when all that stands before both ends is finished and ends for
both at once. Consecutive wire actions of a rank with equal needs are one exchange: they can start together, so they do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby
from typing import Any

from lt_core.base import staircase
from lt_core.base.action import Action
from lt_core.base.errors import ScheduleError
from lt_core.base.graph import NEVER, Graph, circle, graph, order, ticks


@dataclass(frozen=True)
class Schedule:
    """A named order of actions; `check()` returns it or says what is wrong, `grid()` draws it as text."""

    name: str
    lanes: tuple[tuple[Action, ...], ...]
    needs: Mapping[Action, tuple[Action, ...]]

    @property
    def size(self) -> int:
        """How many ranks it is for."""
        return len(self.lanes)

    def actions(self) -> Iterator[Action]:
        """Every action, lane by lane."""
        return chain.from_iterable(self.lanes)

    def exchanges(self, rank: int) -> list[tuple[Action, ...]]:
        """The lane as it is executed: each action alone, or the wire actions that start together."""

        def together(a: Action) -> object:
            return self.needs.get(a, ()) if a.peer >= 0 else a

        return [tuple(run) for _, run in groupby(self.lanes[rank], together)]

    @cached_property
    def tasks(self) -> Graph:
        """The graph of who waits for whom, made once."""
        return graph(self.lanes, self.needs)

    def check(self) -> Schedule:
        """The schedule itself, if some machine could run it. Errors: `ScheduleError`, which shows the grid."""
        _ = self._sound
        return self

    @cached_property
    def _sound(self) -> bool:
        """True, or the error of `check`; looked at once, for loops ask again and again."""
        self._check_lanes()
        self._check_transfers()
        self._check_needs()
        if len(order(self.tasks)) < len(self.tasks.tasks):
            path = circle(self.tasks)
            waits = " waits for ".join(f"{a} (rank {a.rank})" for a in path)
            raise self._wrong(path[0], "waits for ever", waits, attempt="reorder a lane or drop a need on the circle")
        return True

    def _check_lanes(self) -> None:
        lanes = Counter(lane[0].rank for lane in self.lanes if lane)
        for lane in self.lanes:
            own = lane[0].rank if lane and lanes[lane[0].rank] == 1 and 0 <= lane[0].rank < self.size else None
            for a in lane:
                if a.rank != own:
                    raise self._wrong(a, "stands in a lane of another rank", expected="one lane a rank, from rank 0 on")
                if a.unit < 0 or a.batch < 0 or a.count < 1:
                    raise self._wrong(a, "is out of range", expected="unit and batch from 0, count from 1")
        if len(self.tasks.number) < sum(map(len, self.lanes)):
            twin = next(a for a, times in Counter(self.actions()).items() if times > 1)
            raise self._wrong(twin, "occurs twice", attempt="count repeats in `batch`")

    def _check_transfers(self) -> None:
        for task in self.tasks.tasks:
            a = task[0]
            if a.peer < 0:
                continue
            if a.op.stream not in ("out", "in"):
                raise self._wrong(a, f"has a peer but runs on {a.op.stream}", expected="a verb of the wire")
            if a.peer == a.rank:
                raise self._wrong(a, "is sent to its own rank", attempt="leave it out")
            if len(task) == 1:
                rivals = [b for b in self.actions() if b.peer >= 0 and b.transfer == a.transfer and b != a]
                why = f"shares its other end with {rivals[0]}" if rivals else f"has no other end on rank {a.peer}"
                raise self._wrong(a, why, attempt=f"give rank {a.peer} its end")
            if task[1].count != a.count:
                raise self._wrong(a, "differs from its other end", f"{a} against {task[1]}", "one count")

    def _check_needs(self) -> None:
        tasks, number = self.tasks.tasks, self.tasks.number
        for a in (a for i in self.tasks.after[NEVER] for a in tasks[i]):
            for n in self.needs.get(a, ()):
                if n not in number:
                    why = f"needs {n} of rank {n.rank}, which is in no lane"
                    raise self._wrong(a, why, attempt=f"add {n} or drop it")

    def _wrong(self, a: Action, why: str, got: object = "", expected: object = "", attempt: str = "") -> ScheduleError:
        what = f"{self.name}: {a} of rank {a.rank} {why}"
        return ScheduleError(what, got, expected, attempt, staircase.near(self.grid(mark=a)))

    def grid(self, mark: Action | None = None) -> str:
        """Rows are ranks, columns earliest ticks; `!` stands before `mark`, and what can never start stands right."""
        twins = len(self.tasks.number) < sum(map(len, self.lanes))
        return staircase.drawn(self.lanes, {} if twins else ticks(self.tasks), mark)

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "lanes": self.lanes, "needs": self.needs}  # the graph is made anew where it is read

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
