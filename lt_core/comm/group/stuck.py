"""A wait that will not end: found in the pages, without asking anybody.

It waits too long, perhaps because ranks wait for each other in a circle; or for a rank that has ended the cell (or does
not run it) and so can never come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lt_core.comm.group.cell import Ask, Cell, ranks_text
from lt_core.comm.group.members import Members
from lt_core.comm.group.pages import Watched, Where
from lt_core.comm.group.report import ANSWER_S, pending

NEVER_S = 0.5  # how long a wait for a rank that can never come is looked at before it is believed
RECORD_S = 1.0  # how often torch's record is asked for, once a cell has run longer than a wait may last


class Stuck(NamedTuple):
    """Why a cell cannot go on, and which rank is to blame; `shared`: it is no more to blame than others."""

    rank: int
    kind: str
    message: str
    report: str = ""
    shared: bool = False


class Watch:
    """Looks at the ranks of a cell."""

    def __init__(self, members: Members, pages: Watched, cell: Cell, generation: int, ranks: Sequence[int]) -> None:
        self._members, self._pages, self._cell, self._generation = members, pages, cell, generation
        self._ranks = ranks
        self._seen_s = self._asked_s = 0.0

    def look(self, open_: Sequence[int], now_s: float, age_s: float) -> Stuck | None:
        """What keeps the `open_` ranks from ending the cell, which has run for `age_s`."""
        waits = [(rank, where) for rank in open_ for where in self._pages.waits(rank)]
        ended = set(range(self._members.size)) - set(open_)
        elsewhere = [rank for rank in open_ if rank not in dict(waits)]  # of the others torch records the same wait
        return self._never(waits, ended, now_s) or self._too_long(waits, now_s) or self._raw(elsewhere, now_s, age_s)

    def _never(self, waits: Sequence[tuple[int, Where]], ended: set[int], now_s: float) -> Stuck | None:
        for rank, where in waits:
            missing = [r for r in self._pages.missing(where, rank, self._generation) if r in ended]
            if missing:
                self._seen_s = self._seen_s or now_s
                return self._gone(missing, rank, where) if now_s >= self._seen_s + NEVER_S else None
        self._seen_s = 0.0
        return None

    def _gone(self, missing: Sequence[int], rank: int, where: Where) -> Stuck:
        outside = [r for r in missing if r not in self._ranks]
        done = "does not run this cell" if outside else "has ended the cell"
        who = ranks_text(tuple(outside or missing))
        done = done if len(outside or missing) == 1 else done.replace("does", "do").replace("has", "have")
        return Stuck((outside or missing)[0], "Deadline", f"{who} {done}, but rank {rank} waits in {where}")

    def _too_long(self, waits: Sequence[tuple[int, Where]], now_s: float) -> Stuck | None:
        limit = f"for more than {self._cell.timeout_s:g} s"
        for rank, where in waits:
            if now_s - where.since_s > self._cell.timeout_s:
                missing = self._pages.missing(where, rank, self._generation)
                if ring := circle({r: self._pages.missing(w, r, self._generation) for r, w in reversed(waits)}):
                    drawn = " -> ".join(map(str, [*ring, ring[0]]))
                    message = f"ranks wait for each other in a circle, {drawn}, {limit}"
                    return Stuck(ring[0], "Deadline", message, shared=True)
                said = f"{ranks_text(tuple(missing))} not come" if missing else "all ranks are there"
                said = said.replace(" not", " has not" if len(missing) == 1 else " have not")
                message = f"rank {rank} waits in {where} {limit}: {said}"
                return Stuck(missing[0] if missing else rank, "Deadline", message)
        return None

    def _raw(self, ranks: Sequence[int], now_s: float, age_s: float) -> Stuck | None:
        """Calls that went past `comm`, as torch itself has recorded them."""
        timeout_s = self._cell.timeout_s
        if age_s < timeout_s or now_s < self._asked_s + RECORD_S:
            return None
        self._asked_s = now_s
        for rank, flight in sorted(self._members.ask(ranks, Ask("flight"), ANSWER_S).items()):
            for raw in pending(flight, timeout_s):
                message = f"rank {rank} waits in torch.distributed's {raw} for more than {timeout_s:g} s"
                return Stuck(rank, "Deadline", message)
        return None


def circle(waits_for: Mapping[int, Sequence[int]]) -> list[int]:
    """The ranks that wait for each other in a circle, from the lowest one on; none where there is no such.

    >>> circle({0: [1], 1: [2], 2: [1]})
    [1, 2]
    """
    return next((found for start in sorted(waits_for) if (found := _way(start, start, waits_for, set()))), [])


def _way(at: int, to: int, waits_for: Mapping[int, Sequence[int]], seen: set[int]) -> list[int]:
    """The ranks on a way of waits from `at` to `to`, without its end; none where there is no way."""
    for following in waits_for.get(at, ()):
        if following == to:
            return [at]
        if following not in seen:
            seen.add(following)
            if rest := _way(following, to, waits_for, seen):
                return [at, *rest]
    return []
