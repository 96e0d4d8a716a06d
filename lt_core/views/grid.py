"""A schedule's staircase: rows are ranks and their streams, columns the earliest tick at which each action can run."""

from __future__ import annotations

import textwrap
from collections import Counter

from lt_core.base.action import Action, Op
from lt_core.base.graph import ticks
from lt_core.base.records import Span
from lt_core.base.schedule import Schedule
from lt_core.views.actions import crowded, fill_of, short, with_peer
from lt_core.views.lanes import Bar, draw, keys, place
from lt_core.views.show import Figure
from lt_core.views.style import TITLE, escaped, titled

WIDE = 8  # columns up to which a cell also has room for the other end
LABELS = 16  # columns that are numbered, at most


def grid(schedule: Schedule, *, title: str = "", under: str = "columns are earliest ticks") -> Figure:
    """The picture of a schedule, a tick an action. Errors: `ScheduleError` if no machine could run it."""
    tick = ticks(schedule.check().tasks)
    actions = list(schedule.actions())
    columns = max(tick.values(), default=-1) + 1
    text, several = with_peer if columns <= WIDE else short, crowded(actions)
    block = place(keys([Span(a.rank, a.op.stream, str(a), tick[a], tick[a] + 1) for a in actions]))
    bars = [
        Bar(block.lanes[a.rank, a.op.stream], tick[a], 1, fill_of(a), text(a, a.rank in several), _hover(a, tick[a]))
        for a in actions
    ]
    fig = draw(bars, [block], columns)
    numbered = range(0, columns, -(-columns // LABELS) or 1)
    fig.update_xaxes(tickvals=[k + 0.5 for k in numbered], ticktext=list(map(str, numbered)), showgrid=False, ticks="")
    finding = f"{schedule.name}: {schedule.size} ranks, {columns} ticks"
    titled(fig, title or textwrap.shorten(finding, TITLE, placeholder=" …"), under)
    return Figure(fig, (f"{title}. " if title else "") + _words(schedule, tick, len(block.lanes) * columns))


def _hover(a: Action, tick: int) -> str:
    return escaped(f"rank {a.rank} {a.op.stream}, tick {tick}") + f"<br>{escaped(f'{a}: {a.op.meaning}')}"


def _words(schedule: Schedule, tick: dict[Action, int], cells: int) -> str:
    if not tick:
        return f"{schedule.name}: {schedule.size} ranks and nothing to do."
    columns = max(tick.values()) + 1
    counts = Counter(a.op for a in tick)
    verbs = ", ".join(f"{counts[op]:,} {op.name}" for op in Op if counts[op])
    filled = len({(a.rank, a.op.stream, t) for a, t in tick.items()})
    first = next(lane for lane in schedule.lanes if lane)
    row = [f"tick {t} " + " ".join(str(a) for a in first if tick[a] == t) for t in sorted({tick[a] for a in first})]
    shown = "; ".join(row[:8]) + (f"; ... {row[-1]}" if len(row) > 8 else "")
    empty = f"{cells - filled:,} of {cells:,} cells are empty" if cells > filled else "No cell is empty"
    return (
        f"{schedule.name}: {schedule.size} ranks, {len(tick):,} actions in {columns:,} ticks ({verbs}). "
        f"{empty}. Rank {first[0].rank}: {shown}."
    )
