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

from lt_core.base.action import Action
from lt_core.base.errors import ScheduleError
from lt_core.base.graph import Graph, circle, graph, ticks


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
        seen = set(self.actions())
        self._check_lanes(seen)
        self._check_needs(seen)
        g = self.tasks
        if len(ticks(g)) < len(seen):
            path = circle(g)
            waits = " waits for ".join(f"{a} (rank {a.rank})" for a in path)
            raise self._wrong(
                path[0], "waits for ever", got=waits, attempt="reorder a lane or drop a need on the circle"
            )
        return self

    def _check_lanes(self, seen: set[Action]) -> None:
        ranks = Counter(r for lane in self.lanes for r in {a.rank for a in lane})
        ends = {(a.op.stream == "out", a.transfer): a for a in seen if a.peer >= 0}
        for lane in self.lanes:
            mine = set()
            for a in lane:
                if a in mine:
                    raise self._wrong(a, "occurs twice", attempt="count repeats in `batch`")
                mine.add(a)
                if a.rank != lane[0].rank or ranks[a.rank] > 1:
                    raise self._wrong(a, "stands in a lane of another rank", expected="one lane a rank")
                if a.unit < 0 or a.batch < 0 or a.count < 1:
                    raise self._wrong(a, "is out of range", expected="unit and batch from 0, count from 1")
                if a.peer >= 0:
                    self._check_transfer(a, ends.get((a.op.stream != "out", a.transfer)))

    def _check_transfer(self, a: Action, other: Action | None) -> None:
        if a.op.stream not in ("out", "in"):
            raise self._wrong(a, f"has a peer but runs on {a.op.stream}", expected="a verb of the wire")
        if a.peer == a.rank:
            raise self._wrong(a, "is sent to its own rank", attempt="leave it out")
        if other is None:
            raise self._wrong(a, f"has no other end on rank {a.peer}", attempt=f"give rank {a.peer} its end")
        if other.count != a.count:
            raise self._wrong(a, "differs from its other end", got=f"{a} against {other}", expected="one count")

    def _check_needs(self, seen: set[Action]) -> None:
        for a in self.actions():
            for n in self.needs.get(a, ()):
                if n not in seen:
                    raise self._wrong(
                        a, f"needs {n} of rank {n.rank}, which is in no lane", attempt=f"add {n} or drop it"
                    )

    def _wrong(self, a: Action, why: str, got: object = "", expected: object = "", attempt: str = "") -> ScheduleError:
        where = f"{self.name}: {a} of rank {a.rank} {why}"
        return ScheduleError(where, got, expected, f"{attempt}\n{self.grid(mark=a)}".strip())

    def grid(self, mark: Action | None = None) -> str:
        """Rows are ranks, columns earliest ticks; `!` stands before `mark`, and what can never start stands right."""
        twins = len(set(self.actions())) < sum(map(len, self.lanes))
        tick = {} if twins else ticks(self.tasks)
        rows = [self._row(lane, tick, mark) for lane in self.lanes]
        columns = range(max((t for row in rows for t in row), default=-1) + 1)
        cells = [["+".join(row.get(t, ["."])) for t in columns] for row in rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        ranks = [lane[0].rank if lane else r for r, lane in enumerate(self.lanes)]
        lines = [" ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]
        return "\n".join(f"{r}: {line}".rstrip() for r, line in zip(ranks, lines, strict=True))

    @staticmethod
    def _row(lane: tuple[Action, ...], tick: Mapping[Action, int], mark: Action | None) -> dict[int, list[str]]:
        row: dict[int, list[str]] = {}
        late = max(tick.values(), default=-1)
        for a in lane:
            if a not in tick:
                late += 1
            row.setdefault(tick.get(a, late), []).append("!" * (a == mark) + str(a))
        return row

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "lanes": self.lanes, "needs": self.needs}  # the graph is made anew where it is read

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
