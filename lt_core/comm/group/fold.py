"""What all ranks say alike is shown once: while it comes (they have a moment to say it), and for good in a saved page.

rank 0: hello                     rank 0: hello
rank 1: hello    -> ranks 0-1: hello    ...
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

from lt_core.comm.group.cell import Line
from lt_core.comm.group.streams import Heard

WINDOW_S = 0.05


class Fold:
    """Lines on their way to the screen, of the ranks that run a cell."""

    def __init__(self, ranks: Sequence[int]) -> None:
        self._ranks = tuple(ranks)
        self._held: dict[str, dict[int, deque[Heard]]] = {}

    def add(self, heard: Iterable[Heard]) -> None:
        """Lines that came."""
        for line in heard:
            held = self._held.setdefault(line.stream, {rank: deque() for rank in self._ranks})
            held.setdefault(line.rank, deque()).append(line)

    def take(self, now_s: float) -> list[Line]:
        """Those to be shown now: what all said, and what has waited long enough for the others to say it."""
        return [line for held in self._held.values() for line in self._ready(held, now_s)]

    @property
    def due_s(self) -> float | None:
        """When `take` has something again, unless more comes."""
        heads = [queue[0].at_s for held in self._held.values() for queue in held.values() if queue]
        return min(heads) + WINDOW_S if heads else None

    def _ready(self, held: dict[int, deque[Heard]], now_s: float) -> list[Line]:
        ready = []
        while heads := [queue[0] for queue in held.values() if queue]:
            said = {(line.text, line.late) for line in heads}
            if len(said) == 1 and all(held[rank] for rank in self._ranks):
                chosen = heads
            elif old := [line for line in heads if now_s >= line.at_s + WINDOW_S]:
                chosen = [min(old, key=lambda line: (_elsewhere(held, line), line.at_s, line.rank))]
            else:
                break
            for line in chosen:
                held[line.rank].popleft()
            ready.append(Line(tuple(line.rank for line in chosen), chosen[0].stream, chosen[0].text, chosen[0].late))
        return ready


def _elsewhere(held: dict[int, deque[Heard]], line: Heard) -> int:
    """How many other ranks have that line waiting: it may still be folded."""
    return sum(any(other.text == line.text for other in queue) for rank, queue in held.items() if rank != line.rank)


def settled(lines: Iterable[Line]) -> list[Line]:
    """The same lines in an order that does not depend on who was quicker: for a notebook that is saved.

    What all ranks printed comes once, in between each rank's own lines, by rank; the group's own words come first.
    """
    kept = [line for line in lines if not line.text.endswith("\r")]
    own = [line for line in kept if not line.ranks]
    ranks = sorted({rank for line in kept for rank in line.ranks})
    return own + [line for stream in ("out", "err") for line in _settled(kept, stream, ranks)]


def _settled(lines: Sequence[Line], stream: str, ranks: Sequence[int]) -> list[Line]:
    said = {r: [(ln.text, ln.late) for ln in lines if ln.stream == stream and r in ln.ranks] for r in ranks}
    at, found = dict.fromkeys(ranks, 0), []
    for text, late in _common(list(said.values())):
        ends = {r: said[r].index((text, late), at[r]) for r in ranks}
        found += [Line((r,), stream, *line) for r in ranks for line in said[r][at[r] : ends[r]]]
        found.append(Line(tuple(ranks), stream, text, late))
        at = {r: end + 1 for r, end in ends.items()}
    return found + [Line((r,), stream, *line) for r in ranks for line in said[r][at[r] :]]


def _common(said: Sequence[Sequence[tuple[str, bool]]]) -> list[tuple[str, bool]]:
    """Lines that stand in all lists, in one order; few lines, so that the first list's order decides."""
    if not said:
        return []
    everywhere = Counter(said[0])
    for other in said[1:]:
        everywhere &= Counter(other)
    at, common = [0] * len(said), list[tuple[str, bool]]()
    for line in said[0]:
        if not everywhere[line]:
            continue
        places = [_find(other, line, start) for other, start in zip(said, at)]
        if min(places) >= 0:
            at, common = [place + 1 for place in places], [*common, line]
    return common


def _find(lines: Sequence[tuple[str, bool]], line: tuple[str, bool], start: int) -> int:
    return next((i for i in range(start, len(lines)) if lines[i] == line), -1)
