"""When each rank did what: one lane a (rank, stream), one bar an action; several traces on one axis."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Iterator
from functools import partial

from lt_core.base.action import Action
from lt_core.base.errors import UserError
from lt_core.base.records import Span
from lt_core.base.trace import Trace
from lt_core.base.units import seconds_text
from lt_core.views.actions import action_of, crowded, fill_of, fill_of_words, short
from lt_core.views.lanes import Bar, Block, draw, keys, place
from lt_core.views.show import Figure
from lt_core.views.style import TITLE, WAITING, escaped, titled

ALL = ""  # the stream of a lane that holds all streams of a rank


def gantt(
    *traces: Trace,
    title: str = "",
    under: str = "",
    streams: Collection[str] | None = None,
    waiting: bool = False,
    unit: str = "",
    one_lane: bool = False,
) -> Figure:
    """The picture of one run, or of several on one axis, the first on top, each from its own zero.

    title, under: the finding, and where it was measured; both are taken from the trace where they are not given.
    streams: only these, such as ["in"].  waiting: draw what is between the bars.  unit: what a simulated second stands
    for, such as "ticks"; else time is in s, ms or us.  one_lane: all streams of a rank in one lane, for ranks that do
    one thing at a time. Errors: no trace, streams that are not there, a title too long.
    """
    if not traces:
        raise UserError("a Gantt of nothing", expected="at least one Trace")
    moved = [t.shifted(-min((s.start_s for s in t.spans), default=0.0)) for t in traces]
    longest = max(t.makespan_s() for t in moved)
    scale, name = (1.0, unit) if unit else _scale(longest)
    say = partial(_say, unit=unit)
    blocks: list[Block] = []
    bars: list[Bar] = []
    for trace in moved:
        heading = f"{trace.name}, {_how(trace)}" if len(moved) > 1 else ""
        lanes = keys(trace.spans, streams)
        lanes = [(rank, ALL) for rank in sorted({rank for rank, _ in lanes})] if one_lane else lanes
        blocks.append(place(lanes, heading, blocks[-1].end if blocks else 0.0))
        bars += _bars(trace, blocks[-1], scale, say)
        bars += _gaps(trace, blocks[-1], scale, say) if waiting else []
    fig = draw(bars, blocks, longest / scale)
    fig.update_xaxes(ticksuffix=f" {name}", showticksuffix="last", rangemode="tozero")
    titled(
        fig, title or _finding(moved, say), under or (_how(moved[0]) if len(moved) == 1 else "each from its own start")
    )
    first = (f"{title}. " if title else "") + (f"Drawn: {', '.join(streams)}." if streams else "")
    return _worded(Figure(fig, first.strip()), moved, say)


def _bars(trace: Trace, block: Block, scale: float, say: Callable[[float], str]) -> Iterator[Bar]:
    actions = [action_of(s) for s in trace.spans]
    several = crowded(a for a in actions if a)
    for s, a in zip(trace.spans, actions, strict=True):
        y = block.lanes.get((s.rank, s.stream), block.lanes.get((s.rank, ALL)))
        if y is not None and s.end_s > s.start_s:  # what takes no time has no bar, and no place in the legend
            text = short(a, a.rank in several) if a else s.name
            fill = fill_of(a) if a else fill_of_words(s)
            yield Bar(y, s.start_s / scale, (s.end_s - s.start_s) / scale, fill, text, _hover(s, a, say))


def _hover(s: Span, a: Action | None, say: Callable[[float], str]) -> str:
    lines = [f"rank {s.rank} {s.stream}", s.name + (f": {a.op.meaning}" if a else "")]
    lines += [f"starts at {say(s.start_s)}, lasts {say(s.end_s - s.start_s)}"]
    lines += [f"{s.nbytes:,} bytes"] if s.nbytes else []
    return "<br>".join(map(escaped, lines))


def _gaps(trace: Trace, block: Block, scale: float, say: Callable[[float], str]) -> Iterator[Bar]:
    whole = trace.makespan_s()
    for (rank, stream), y in block.lanes.items():
        until = 0.0
        mine = sorted((s.start_s, s.end_s) for s in trace.spans if s.rank == rank and stream in (s.stream, ALL))
        for start, end in [*mine, (whole, whole)]:
            if start - until > whole / 1000:  # what is thinner than a pixel is the clock's own, not waiting
                hover = f"{f'rank {rank} {stream}'.strip()} waits<br>from {say(until)} for {say(start - until)}"
                yield Bar(y, until / scale, (start - until) / scale, WAITING, "", hover)
            until = max(until, end)


def _scale(whole_s: float) -> tuple[float, str]:
    for step, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if whole_s >= step:
            return step, name
    return (1e-9, "ns") if whole_s else (1.0, "s")


def _say(seconds: float, unit: str) -> str:
    return f"{seconds:,.3g} {unit}" if unit else seconds_text(seconds)


def _how(trace: Trace) -> str:
    return trace.clock + (f" over {trace.backend}" if trace.backend else "")


def _finding(traces: list[Trace], say: Callable[[float], str]) -> str:
    first = traces[0]
    if len(traces) == 1:
        text = f"{first.name} on {len(first.ranks())} ranks takes {say(first.makespan_s())}"
    else:
        text = ", ".join(f"{t.clock} {say(t.makespan_s())}" for t in traces)
        text = f"{first.name}: {text}"
    return textwrap.shorten(text, TITLE, placeholder=" …")


def _worded(figure: Figure, traces: list[Trace], say: Callable[[float], str]) -> Figure:
    exact: list[str] = [figure.words]
    clocks: list[str] = []
    for trace in traces:
        exact.append(trace.describe(stable=True))
        # a simulation's seconds are computed, so they are as exact as its counts
        (exact if trace.clock == "simulated" else clocks).append(_times(trace, say))
    if len(traces) > 1 and traces[0].makespan_s():
        ratio = traces[-1].makespan_s() / traces[0].makespan_s()
        clocks.append(f"The last takes {ratio:.3g} times as long as the first.")
    return Figure(figure.figure, " ".join(filter(None, exact)), " ".join(filter(None, clocks)))


def _times(trace: Trace, say: Callable[[float], str]) -> str:
    whole = trace.makespan_s()
    busy = {key: round(trace.busy_s(*key) / whole, 2) for key in keys(trace.spans)} if whole else {}
    if not busy:
        return ""
    most, least = max(busy, key=lambda k: busy[k]), min(busy, key=lambda k: busy[k])
    text = f"{trace.clock.capitalize()}, it takes {say(whole)}; of that, rank {most[0]}'s {most[1]} is busy "
    return text + f"{busy[most]:.0%}" + (f", rank {least[0]}'s {least[1]} {busy[least]:.0%}." if least != most else ".")
