"""Seconds against bytes on two logarithmic axes: a line a way of doing it, each named at its end; where two cross.

10 s |          . star        a diamond at `at`: where you are
     |     .  '  . ring
1 ms |_._'__.__'_____
     1 kB        100 MB
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text, seconds_text
from lt_core.views.show import Figure
from lt_core.views.style import (
    BLUE,
    BROWN,
    CURVES,
    DASHES,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    bytes_ticks,
    escaped,
    seconds_ticks,
    sized,
    titled,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

Line = Mapping[int, float]  # seconds by bytes
COLOURS = ((BLUE, BLUE), (ORANGE, BROWN), (GREEN, GREEN), (PURPLE, INK))  # of a line, and of its name on white
NAME, APART = 8.0, 0.07  # pixels of a letter, so that names find room beside the axes; of the axis, between two names


def curves(lines: Mapping[str, Line], *, title: str, under: str, at: int = 0) -> Figure:
    """The picture of up to four lines over the same bytes. at: the bytes at which each line gets a mark.

    Errors: no line, more than four, lines that are not over the same bytes, a value that is not above 0.
    """
    sizes = _checked(lines, at)
    low, high = (log10(end(end(line.values()) for line in lines.values())) for end in (min, max))
    heights = apart({name: log10(line[sizes[-1]]) for name, line in lines.items()}, high - low)
    fig = sized(_draw(lines, sizes, at, heights), CURVES)
    fig.update_xaxes(**bytes_ticks(floor(log10(sizes[0])), ceil(log10(sizes[-1]))), title_text="bytes of the tensor")
    fig.update_yaxes(**seconds_ticks(floor(low), ceil(high)), showgrid=True)
    fig.update_layout(margin_r=round(24 + NAME * max(map(len, lines))), showlegend=False)
    return Figure(
        titled(fig, title, under), " ".join([f"{title}.", *_words(lines, sizes, at)]), rows=_rows(lines, sizes)
    )


def apart(ends: Mapping[str, float], span: float) -> dict[str, float]:
    """At which height each name stands: at its line's end, moved up until none covers another. span: the axis's."""
    heights, last = dict[str, float](), -float("inf")
    for name in sorted(ends, key=lambda name: ends[name]):
        last = heights[name] = max(ends[name], last + APART * (span or 1.0))
    return heights


def crossings(one: Line, other: Line) -> list[int]:
    """The bytes at which two lines cross, between two of their points by the straight line of the logarithms."""
    sizes, found = sorted(one), []
    for a, b in pairwise(sizes):
        before, after = (log10(one[n] / other[n]) for n in (a, b))
        if before * after < 0:
            share = before / (before - after)
            found.append(round(10 ** (log10(a) + share * (log10(b) - log10(a)))))
    return found


def _checked(lines: Mapping[str, Line], at: int) -> list[int]:
    if not 1 <= len(lines) <= len(DASHES):
        raise UserError("curves that can be told apart", f"{len(lines)} lines", f"1 to {len(DASHES)}")
    sizes = same_bytes(lines)
    if at and at not in sizes:
        raise UserError("at is none of the bytes", at, f"one of {', '.join(f'{n:,}' for n in sizes)}")
    return sizes


def same_bytes(lines: Mapping[str, Line]) -> list[int]:
    """The bytes that all lines are over. Errors: they differ, or a value that is not above 0."""
    sizes = sorted(next(iter(lines.values())))
    for name, line in lines.items():
        if sorted(line) != sizes or len(sizes) < 2:
            raise UserError(f"{name} is not over the same bytes", sorted(line), sizes)
        if min(sizes[0], *line.values()) <= 0:
            raise UserError(f"{name} has no place on logarithmic axes", min(line.values()), "numbers above 0")
    return sizes


def _draw(lines: Mapping[str, Line], sizes: Sequence[int], at: int, heights: Mapping[str, float]) -> go.Figure:
    import plotly.graph_objects as go

    fig = go.Figure()
    for (name, line), (colour, text), dash in zip(lines.items(), COLOURS, DASHES):
        hover = [f"{name}: {bytes_text(n)} in {seconds_text(line[n])}" for n in sizes]
        look = {"mode": "lines", "line": {"color": colour, "width": 3, "dash": dash}}
        fig.add_scatter(x=sizes, y=[line[n] for n in sizes], name=escaped(name), text=hover, hoverinfo="text", **look)
        end = {"x": log10(sizes[-1]), "y": heights[name], "xanchor": "left", "xshift": 6, "showarrow": False}
        fig.add_annotation(text=escaped(name), font={"size": 13, "color": text}, **end)
    if at:
        mark = {"symbol": "diamond-open", "size": 12, "color": INK, "line": {"width": 2}}
        y = [line[at] for line in lines.values()]
        fig.add_scatter(x=[at] * len(y), y=y, mode="markers", marker=mark, hoverinfo="skip", cliponaxis=False)
    return fig


def _words(lines: Mapping[str, Line], sizes: Sequence[int], at: int) -> list[str]:
    first, last = sizes[0], sizes[-1]
    said = []
    for name, line in lines.items():
        here = f", {seconds_text(line[at])} at {bytes_text(at)}" if at not in (0, first, last) else ""
        ends = f"{seconds_text(line[first])} at {bytes_text(first)}, {seconds_text(line[last])} at {bytes_text(last)}"
        said.append(f"{name}: {ends}{here}.")
    for (one, first_line), (other, second_line) in combinations(lines.items(), 2):
        said += [f"{one} and {other} cross at {bytes_text(n)}." for n in crossings(first_line, second_line)]
    return said


def _rows(lines: Mapping[str, Line], sizes: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    return (("bytes", *lines), *((f"{n:,}", *(seconds_text(line[n]) for line in lines.values())) for n in sizes))
