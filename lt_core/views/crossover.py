"""Seconds against bytes for many ways at once: who is the fastest from where on, and what runs just made say of it.

10 s |  doubling : halving    .        thin lines: the laws, each with a colour, a dash and the shape of its dots
     |           :     .  o '          thick: the fastest; it changes where a line stands upright
1 ms |_._.__.__'_:'____o___            dots: runs, those of one size side by side
     1 kB      30 kB    100 MB
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text, seconds_text
from lt_core.views.curves import Line, said_of, same_bytes
from lt_core.views.show import Figure
from lt_core.views.style import (
    AXIS,
    BLUE,
    BOTTOM,
    CURVES,
    DASHES,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    TOP,
    VERMILION,
    bytes_ticks,
    escaped,
    seconds_ticks,
    sized,
    titled,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

COLOURS = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, INK, AXIS)
PATTERNS = (*DASHES, "longdash", "longdashdot", "2px,7px", "14px,3px,3px,3px,3px,3px")  # no two lines alike in grey
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star")
ABOVE, BELOW = 104, 128  # pixels: room for the names of stretches in two rows, and for a legend in three

Stretches = Sequence[tuple[int, str]]  # (from how many bytes on, which is the fastest), the first from 0 on


def crossover(
    lines: Mapping[str, Line], fastest: Stretches, dots: Mapping[str, Line] | None = None, *, title: str, under: str
) -> Figure:
    """The picture of up to eight laws over the same bytes, of the fastest among them, and of what was measured.

    fastest: the stretches, as `collectives.crossovers` gives them. dots: seconds by bytes, of any of the lines.
    Errors: no line, more than eight, lines that are not over the same bytes, a stretch or dots of none of them.
    """
    if not 1 <= len(lines) <= len(SHAPES):
        raise UserError("laws that can be told apart", f"{len(lines)} lines", f"1 to {len(SHAPES)}")
    measured = dots or {}
    for name in (*measured, *(name for _, name in fastest)):
        if name not in lines:
            raise UserError(f"{name} has no law in this picture", expected=f"one of {', '.join(lines)}")
    sizes = same_bytes(lines)
    shown = [(max(start, sizes[0]), name) for start, name in fastest if start < sizes[-1]]
    fig = sized(_draw(lines, measured), CURVES + ABOVE + BELOW - TOP - BOTTOM)
    _mark(fig, lines, shown, sizes)
    values = [v for line in (*lines.values(), *measured.values()) for v in line.values()]
    fig.update_xaxes(**bytes_ticks(floor(log10(sizes[0])), ceil(log10(sizes[-1]))), title_text="bytes of the tensor")
    fig.update_yaxes(
        **seconds_ticks(floor(log10(min(values))), ceil(log10(max(values)))), showgrid=True, title_text="time"
    )
    fig.update_layout(margin_t=ABOVE, margin_b=BELOW)
    exact = " ".join([f"{title}.", _who(fastest), *_ends(lines, sizes)])
    return Figure(titled(fig, title, under), exact, said_of(measured), _rows(lines, sizes))


def _draw(lines: Mapping[str, Line], dots: Mapping[str, Line]) -> go.Figure:
    import plotly.graph_objects as go

    fig = go.Figure()
    for k, (name, line) in enumerate(lines.items()):
        look = {"color": COLOURS[k], "width": 2, "dash": PATTERNS[k]}
        hover = [f"{name}: {bytes_text(n)} in {seconds_text(v)}" for n, v in line.items()]
        shown = {"showlegend": False} if name in dots else {"name": escaped(name)}
        fig.add_scatter(
            x=list(line), y=list(line.values()), mode="lines", line=look, text=hover, hoverinfo="text", **shown
        )
        if name in dots:
            marker = {"symbol": SHAPES[k], "size": 8, "color": COLOURS[k], "line": {"color": INK, "width": 0.75}}
            legend = {"name": escaped(name), "mode": "lines+markers", "line": look, "marker": marker}
            fig.add_scatter(x=[None], y=[None], **legend)  # so that it shows the shape of the dots
            ran = [f"{name}, measured: {bytes_text(n)} in {seconds_text(v)}" for n, v in dots[name].items()]
            x = [n * _aside([*dots].index(name), len(dots)) for n in dots[name]]
            own = {"mode": "markers", "marker": marker, "showlegend": False, "cliponaxis": False}
            fig.add_scatter(x=x, y=list(dots[name].values()), text=ran, hoverinfo="text", **own)
    return fig


def _aside(place: int, count: int) -> float:
    """What moves a dot a little to the side, for dots of one size would lie on each other."""
    return float(10 ** (0.05 * (place - (count - 1) / 2)))


def _mark(fig: go.Figure, lines: Mapping[str, Line], stretches: Stretches, sizes: Sequence[int]) -> None:
    """Each stretch: a broad band under its line, its name above, and an upright line where it begins."""
    ends = [start for start, _ in stretches[1:]] + [sizes[-1]]
    for k, ((start, name), end) in enumerate(zip(stretches, ends)):
        x = [start, *(n for n in sizes if start < n < end), end]
        y = [between(lines[name], n) for n in x]
        band = {"mode": "lines", "line": {"color": INK, "width": 9}, "opacity": 0.18}
        fig.add_scatter(x=x, y=y, hoverinfo="skip", name="the fastest", showlegend=k == 0, **band)
        if start > sizes[0]:
            fig.add_vline(x=start, line={"color": INK, "width": 1, "dash": "dot"}, layer="below")
        text = escaped(name if start == sizes[0] else f"{bytes_text(start)}: {name}")
        above = {
            "xanchor": "left",
            "yanchor": "bottom",
            "yref": "paper",
            "yshift": 18 * (k % 2),
        }  # neighbours may be near
        fig.add_annotation(x=log10(start), y=1, text=text, showarrow=False, font_size=13, **above)


def between(line: Line, nbytes: int) -> float:
    """The seconds at any number of bytes, by a straight line between the two points beside it."""
    sizes = sorted(line)
    low = max((n for n in sizes if n <= nbytes), default=sizes[0])
    high = min((n for n in sizes if n >= nbytes), default=sizes[-1])
    share = (nbytes - low) / (high - low) if high > low else 0.0
    return line[low] + share * (line[high] - line[low])


def _who(fastest: Stretches) -> str:
    """`Fastest: doubling, from 30 kB on halving-doubling.`"""
    said = [f"from {bytes_text(start)} on {name}" if start else name for start, name in fastest]
    return f"Fastest: {', '.join(said)}."


def _ends(lines: Mapping[str, Line], sizes: Sequence[int]) -> list[str]:
    first, last = sizes[0], sizes[-1]
    return [
        f"{name}: {seconds_text(line[first])} at {bytes_text(first)}, {seconds_text(line[last])} at {bytes_text(last)}."
        for name, line in lines.items()
    ]


def _rows(lines: Mapping[str, Line], sizes: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    return (("bytes", *lines), *((f"{n:,}", *(seconds_text(line[n]) for line in lines.values())) for n in sizes))
