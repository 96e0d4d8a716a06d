"""Bars in lanes: what a Gantt of a trace, a schedule's staircase and, but for its axes, a version strip share.

heading      simulated
rank 0 out   [==][==]    [==]
rank 0 in        [==][==]          one lane a (rank, stream); y counts lanes downwards from 0
rank 1 out   ...
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from lt_core.base.errors import UserError
from lt_core.base.records import Span
from lt_core.views.style import BOTTOM, FILLS, GRID, INK, LANE, TOP, Fill, escaped, sized

if TYPE_CHECKING:
    import plotly.graph_objects as go

ORDER = ("compute", "out", "in", "d2h", "h2d")  # of the streams of a rank; others follow by name
BETWEEN, HEADING = 0.25, 0.8  # of a lane: space between two ranks of several lanes each; a block's heading
NARROWEST = 420  # pixels that the bars get in a figure 568 wide
HALO = ", ".join(f"{x}px {y}px 0 #FFFFFF" for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y)  # no hatch round a text
Key = tuple[int, str]


class Bar(NamedTuple):
    """One bar: its lane's y, start and length on the axis, its fill, the text in it, the text when pointed at."""

    y: float
    start: float
    length: float
    fill: Fill
    text: str
    hover: str


class Block(NamedTuple):
    """Where the lanes of one trace stand: y of each (rank, stream), the heading and its y, and y where they end."""

    lanes: dict[Key, float]
    heading: str
    heading_at: float
    end: float

    def labels(self) -> dict[float, str]:
        """What stands at each lane: the rank, and the stream where there are several."""
        several = len({stream for _, stream in self.lanes}) > 1
        return {y: f"rank {rank} {stream}" if several else f"rank {rank}" for (rank, stream), y in self.lanes.items()}


def keys(spans: Sequence[Span], streams: Collection[str] | None = None) -> list[Key]:
    """The lanes that spans need, in order: those streams, or every stream on which something took time."""
    known = {s.stream for s in spans}
    if streams is not None and not known & set(streams):
        raise UserError(f"no span on {', '.join(streams)}", expected=f"some of {', '.join(sorted(known))}")
    wanted = {s.stream for s in spans if s.end_s > s.start_s} if streams is None else set(streams)
    found = {(s.rank, s.stream) for s in spans if s.stream in wanted}
    return sorted(found, key=lambda k: (k[0], ORDER.index(k[1]) if k[1] in ORDER else len(ORDER), k[1]))


def place(lanes: Sequence[Key], heading: str = "", top: float = 0.0) -> Block:
    """The lanes below each other from `top` on, under a heading where one is given."""
    several = len({rank for rank, _ in lanes}) < len(lanes)
    y, places = top + HEADING * bool(heading), dict[Key, float]()
    for before, lane in zip([None, *lanes], lanes, strict=False):
        y += BETWEEN if several and before and before[0] != lane[0] else 0.0
        places[lane] = y + 0.5
        y += 1.0
    return Block(places, heading, top + HEADING / 2, y)


def draw(bars: Sequence[Bar], blocks: Sequence[Block], whole: float) -> go.Figure:
    """The figure of all bars on one axis from 0 to `whole`: a legend entry a fill, a label a lane."""
    import plotly.graph_objects as go

    lengths = [bar.length for bar in bars if bar.length > 0]
    pixels = NARROWEST * median(lengths) / whole if lengths and whole else NARROWEST
    border = 1.0 if pixels >= 6 else 0.5 if pixels >= 3 else 0.0  # else borders would cover the bars
    fig = go.Figure()
    for fill in FILLS:
        mine = [bar for bar in bars if bar.fill == fill]
        if mine:
            fig.add_trace(filled(mine, fill, border))
    labels = {y: text for block in blocks for y, text in block.labels().items()}
    end = blocks[-1].end if blocks else 0.0
    fig.update_yaxes(range=[end, 0], fixedrange=True, tickvals=list(labels), ticktext=list(labels.values()), ticklen=0)
    fig.update_yaxes(showgrid=False, ticks="")
    fig.update_xaxes(range=[0, 1.003 * whole or 1], showgrid=True, gridcolor=GRID)
    fig.update_layout(barmode="overlay", showlegend=True)
    for block in blocks:
        _head(fig, block)
    return sized(fig, TOP + BOTTOM + LANE * max(end, 1))


def filled(bars: Sequence[Bar], fill: Fill, border: float = 1.0) -> go.Bar:
    """The bars of one fill, which is an entry in the legend. border: its pixels."""
    import plotly.graph_objects as go

    return go.Bar(
        orientation="h",
        name=fill.name,
        y=[bar.y for bar in bars],
        base=[round(bar.start, 6) for bar in bars],
        x=[round(bar.length, 6) for bar in bars],
        width=0.78,
        marker=fill.marker(border),
        text=[escaped(bar.text) for bar in bars],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"size": 13, "weight": 700, "color": INK, "shadow": HALO if fill.hatch else "none"},
        hovertext=[bar.hover for bar in bars],
        hoverinfo="text",
    )


def _head(fig: go.Figure, block: Block) -> None:
    if block.heading:
        text = f"<b>{escaped(block.heading)}</b>"
        fig.add_annotation(
            text=text, x=0, xref="paper", xanchor="left", y=block.heading_at, showarrow=False, font_size=13
        )
