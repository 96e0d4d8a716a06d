"""What ranks print and give, as lines of text.

rank 0: hello            ranks 0-3: hello       printed by one, printed by all
rank 1 stderr: careful                          told apart by a word
rank 2, from before: ah  group: 4 new ranks     after the end of the cell before; nobody's print
ranks 0-3 -> 6                                  the value of the last line
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lt_core.base.units import bytes_text
from lt_core.comm.group import Line, ranks_text

MOST_LINES, LAST, MOST_CHARACTERS = 1000, 100, 1 << 18  # of what a notebook keeps


def printed(line: Line) -> str:
    """A line that was printed."""
    who = ranks_text(line.ranks) if line.ranks else "group"
    stream = " stderr" if line.stream == "err" and line.ranks else ""
    head = f"{who}{stream}{', from before' * line.late}: "
    return _under(head, line.text.rstrip("\r"))


def given(values: Mapping[int, str]) -> list[str]:
    """Values by rank, equal ones together."""
    ranks: dict[str, list[int]] = {}
    for rank in sorted(values):
        ranks.setdefault(values[rank], []).append(rank)
    return [_under(f"{ranks_text(tuple(who))} -> ", value) for value, who in ranks.items()]


def bounded(lines: Sequence[str]) -> str:
    """The lines as one text; of very many the first and the last ones, and how much that leaves out."""
    text = "\n".join(lines)
    if len(lines) <= MOST_LINES and len(text) <= MOST_CHARACTERS:
        return text
    first = _fitting(lines[: MOST_LINES - LAST], MOST_CHARACTERS // 2)
    last = _fitting(lines[: len(first) - 1 : -1][:LAST], MOST_CHARACTERS // 4)[::-1]
    kept = "\n".join([*first, *last])
    note = f"... {len(lines) - len(first) - len(last):,} lines are not shown ({bytes_text(len(text) - len(kept))})"
    return "\n".join([*first, note, *last])


def _fitting(lines: Iterable[str], room: int) -> list[str]:
    fitting = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        fitting.append(line)
    return fitting


def _under(head: str, text: str) -> str:
    """Later lines of a text stand under its first."""
    return head + text.replace("\n", "\n" + " " * len(head))
