"""A schedule as text: the staircase in which tests are typed and errors are shown.

0: 0F0 0F1 .   0B0 0B1      rows are ranks, columns the earliest ticks
1: .   1F0 1B0 1F1 1B1      what happens on two streams in one tick is joined by +
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lt_core.base.action import Action

ROWS, CHARACTERS = 6, 60  # shown of a large one, on each side of the mark


def drawn(lanes: Sequence[Sequence[Action]], tick: Mapping[Action, int], mark: Action | None) -> str:
    """The whole staircase; `!` stands before `mark`, and actions without a tick stand right of all others."""
    late = max(tick.values(), default=-1) + 1
    rows = [_row(lane, tick, late, mark) for lane in lanes]
    columns = range(max((t for row in rows for t in row), default=-1) + 1)
    cells = [["+".join(row.get(t, ["."])) for t in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    ranks = [lane[0].rank if lane else r for r, lane in enumerate(lanes)]
    lines = [" ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells]
    return "\n".join(f"{r}: {line}".rstrip() for r, line in zip(ranks, lines, strict=True))


def _row(lane: Sequence[Action], tick: Mapping[Action, int], late: int, mark: Action | None) -> dict[int, list[str]]:
    row: dict[int, list[str]] = {}
    for a in lane:
        t = tick.get(a, -1)
        if t < 0:
            t, late = late, late + 1
        row.setdefault(t, []).append("!" * (a == mark) + str(a))
    return row


def near(text: str) -> str:
    """The part of a staircase around its mark; a small one is whole."""
    lines = [(rank, cells.removeprefix(" ")) for rank, _, cells in (line.partition(":") for line in text.splitlines())]
    row, column = next(((r, cells.find("!")) for r, (_, cells) in enumerate(lines) if "!" in cells), (0, 0))
    left, right = max(0, column - CHARACTERS), column + CHARACTERS
    return "\n".join(
        f"{rank}: {'... ' if left else ''}{cells[left:right]}{' ...' if len(cells) > right else ''}".rstrip()
        for rank, cells in lines[max(0, row - ROWS) : row + ROWS + 1]
    )
