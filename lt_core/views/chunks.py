"""Who holds what after a round of a recorded collective: rows are ranks, columns chunks, arrows what has just moved.

         chunk 0   chunk 1   chunk 2        a cell: the chunk's first element, and below it what came (+20, or copy)
rank 0  |   1    |[[ 22  ]]|   3    |       [[ ]] finished: bold, with a bold border
rank 1  |///11///o   20    |   30   |       /// added in this round; plain amber: copied in this round
            ^----+                          an arrow: from whom it came; downwards on the right, upwards on the left
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lt_core.base.action import Op
from lt_core.views.chunk_words import arrived, number_text, value
from lt_core.views.phases import Cell, Phases
from lt_core.views.style import ALL_GATHER, AXIS, BOTTOM, INK, PALE, REDUCE_SCATTER, TOP, Fill, escaped, sized

if TYPE_CHECKING:
    import plotly.graph_objects as go

STILL = Fill("held before", "#FFFFFF")


class Table(NamedTuple):
    """Phase `number` as a table whose cell of rank 0 and chunk 0 stands at (x, y); the text above it."""

    number: int
    x: float = 0.0
    y: float = 0.0
    heading: str = ""


class Look(NamedTuple):
    """Sizes in pixels: a row, the font in a cell, an arrow's head (0: no arrows, where cells are as narrow as numbers);
    how far beside a cell's middle arrows run, clear of the numbers, in columns; whether cells say what came."""

    row: float
    font: int
    head: int = 0
    gutter: float = 0.41
    news: bool = False


def draw(several: Phases, tables: Sequence[Table], names: Mapping[Op, str], look: Look) -> go.Figure:
    """The tables in one figure, always of the same traces, so that one figure can become another in place."""
    import plotly.graph_objects as go

    fig = go.Figure()
    for op, fill in ((None, STILL), (Op.ADD, REDUCE_SCATTER), (Op.COPY, ALL_GATHER)):
        name = f"{names[op]}: {fill.name}" if op else fill.name
        fig.add_trace(_cells(several, tables, op, fill, look).update(name=escaped(name), showlegend=op is not None))
    bold = {"symbol": "square-open", "size": 12, "color": INK, "line": {"width": 3}}
    fig.add_scatter(x=[None], y=[None], mode="markers", marker=bold, name="finished: bold")
    heads = [
        (t.x + c, t.y - 0.78, str(c) if t.heading else f"chunk {c}") for t in tables for c in range(several.chunks)
    ]
    x, y, text = zip(*heads)
    font = {"size": 12, "color": PALE}
    fig.add_scatter(x=x, y=y, text=text, mode="text", textfont=font, hoverinfo="skip", showlegend=False)
    if look.head:
        fig.add_traces(_arrows(several, tables, look))
    return _framed(fig, several, tables, look)


def _framed(fig: go.Figure, several: Phases, tables: Sequence[Table], look: Look) -> go.Figure:
    for t in tables:
        if t.heading:
            text = f"<b>{escaped(t.heading)}</b>"
            fig.add_annotation(text=text, x=t.x - 0.5, y=t.y - 1.5, xanchor="left", showarrow=False, font_size=13)
    rows = {t.y + r: f"rank {r}" for t in tables for r in range(several.ranks)}
    top, bottom = min(t.y for t in tables) - (2.0 if tables[0].heading else 1.2), max(rows) + 0.6
    fig.update_yaxes(range=[bottom, top], tickvals=list(rows), ticktext=list(rows.values()), ticks="", showline=False)
    fig.update_xaxes(range=[-0.55, max(t.x for t in tables) + several.chunks - 0.45], visible=False)
    fig.update_xaxes(fixedrange=True).update_yaxes(fixedrange=True, showgrid=False)
    fig.update_layout(barmode="overlay", dragmode=False)
    return sized(fig, TOP + BOTTOM - 16 + look.row * (bottom - top))


def _cells(several: Phases, tables: Sequence[Table], op: Op | None, fill: Fill, look: Look) -> go.Bar:
    """The cells that `op` has just changed in each table; of None those that nothing has."""
    import plotly.graph_objects as go

    # The first is nowhere: an empty trace would leave the legend, and the legend takes the first one's border.
    base, y, text, hover, borders = [0.0], [0.0], [""], [""], [1.0]
    for t in tables:
        took = {cell: m.op for m in several.phases[t.number].messages for cell in m.cells(m.receiver)}
        finished = several.finished(t.number)
        for cell in sorted(several.phases[t.number].parts):
            if took.get(cell) is op:
                base.append(t.x + cell[1] - 0.46)
                y.append(t.y + cell[0])
                text.append(_inside(several, t.number, cell, cell in finished, look))
                hover.append(_hover(several, t.number, cell, cell in finished))
                borders.append(3.0 if cell in finished else 1.0)
    marker = fill.marker()
    marker["line"] = {"width": borders, "color": INK if op else [INK if b > 1 else AXIS for b in borders]}
    inside = {"textposition": "inside", "insidetextanchor": "middle", "textangle": 0, "constraintext": "none"}
    inside |= {"text": text, "textfont": {"size": look.font, "color": INK}, "hovertext": hover, "hoverinfo": "text"}
    return go.Bar(
        orientation="h", base=base, x=[None, *[0.92] * len(base[1:])], y=y, width=0.8, marker=marker, **inside
    )


def _inside(several: Phases, number: int, cell: Cell, done: bool, look: Look) -> str:
    shown = value(several, number, cell) if look.news else value(several, number, cell).removesuffix(" …")
    lines = [f"<b>{shown}</b>" if done else shown]
    if look.news and (came := arrived(several, number, cell)):
        lines.append(f'<span style="font-size:{look.font - 3}px">{came}</span>')
    return "<br>".join(lines)


def _hover(several: Phases, number: int, cell: Cell, done: bool) -> str:
    phase = several.phases[number]
    inside = [f"rank {r}" + (f" × {n}" if n > 1 else "") for r, n in enumerate(phase.parts[cell]) if n]
    numbers = ", ".join(map(number_text, phase.values[cell])) or "no elements"
    lines = [f"rank {cell[0]}, chunk {cell[1]}: {numbers}", f"the parts of {', '.join(inside)}"]
    return "<br>".join([*lines, "finished"] if done else lines)


def _arrows(several: Phases, tables: Sequence[Table], look: Look) -> list[go.Scatter]:
    """An arrow a chunk that moved: a dot at its sender, a head at its receiver."""
    import plotly.graph_objects as go

    x: list[float | None] = []
    y: list[float | None] = []
    for t in tables:
        for m in several.phases[t.number].messages:
            down = 1 if m.receiver > m.sender else -1
            for _, chunk in m.cells(m.sender):
                x += [t.x + chunk + down * look.gutter] * 2 + [None]
                y += [t.y + m.sender + down * 0.12, t.y + m.receiver - down * 0.12, None]
    size = [0, look.head, 0] * (len(x) // 3)
    heads = {"symbol": "arrow", "angleref": "previous", "color": INK, "opacity": 1, "size": size}
    lines = {"mode": "lines+markers", "marker": heads, "line": {"color": INK, "width": 2 if look.news else 1.2}}
    dots = {"mode": "markers", "marker": {"color": INK, "size": look.head / 2}}
    shared = {"hoverinfo": "skip", "showlegend": False}
    return [go.Scatter(x=x, y=y, **lines, **shared), go.Scatter(x=x[::3], y=y[::3], **dots, **shared)]
