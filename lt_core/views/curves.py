"""Seconds against bytes on two logarithmic axes: a line a way of doing it, each named at its end; where two cross.

10 s |          . star        a diamond at `at`: where you are; dots: what was measured
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
SHAPES = ("circle", "square", "triangle-up", "cross")  # of dots
NAME, APART = 8.0, 0.07  # pixels of a letter, so that names find room beside the axes; of the axis, between two names


def curves(
    lines: Mapping[str, Line],
    *,
    title: str,
    under: str,
    at: int | Mapping[str, int] = 0,
    dots: Mapping[str, Line] | None = None,
    x: str = "bytes of the tensor",
    y: str = "time",
) -> Figure:
    """The picture of up to four lines over the same bytes. at: the bytes where lines get a mark, all or each its own.

    dots: seconds by bytes that were measured, of any of the lines.  x, y: what the bytes and the seconds are of.
    Errors: no line, more than four, lines that are not over the same bytes, a value that is not above 0, a mark or dots
    where no line is.
    """
    marks = {name: at for name in lines if at} if isinstance(at, int) else dict(at)
    sizes, measured = _checked(lines, marks, dots or {}), dots or {}
    values = [v for line in (*lines.values(), *measured.values()) for v in line.values()]
    low, high = log10(min(values)), log10(max(values))
    heights = apart({name: log10(line[sizes[-1]]) for name, line in lines.items()}, high - low)
    fig = sized(_draw(lines, sizes, marks, heights), CURVES)
    _dot(fig, lines, measured)
    fig.update_xaxes(**bytes_ticks(floor(log10(sizes[0])), ceil(log10(sizes[-1]))), title_text=x)
    digits = (1,) if high - low > 2 else (1, 2, 5)
    fig.update_yaxes(**seconds_ticks(floor(low), ceil(high), digits), showgrid=True, title_text=y)
    fig.update_layout(margin_r=round(24 + NAME * max(map(len, lines))), showlegend=False)
    words = " ".join([f"{title}.", *_words(lines, sizes, marks)])
    return Figure(titled(fig, title, under), words, said_of(measured), _rows(lines, sizes))


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


def _checked(lines: Mapping[str, Line], marks: Mapping[str, int], dots: Mapping[str, Line]) -> list[int]:
    if not 1 <= len(lines) <= len(DASHES):
        raise UserError("curves that can be told apart", f"{len(lines)} lines", f"1 to {len(DASHES)}")
    sizes = same_bytes(lines)
    for name in (*marks, *dots):
        if name not in lines:
            raise UserError(f"{name} has no line in this picture", expected=f"one of {', '.join(lines)}")
    for at in marks.values():
        if at not in sizes:
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


def _draw(
    lines: Mapping[str, Line], sizes: Sequence[int], marks: Mapping[str, int], heights: Mapping[str, float]
) -> go.Figure:
    import plotly.graph_objects as go

    fig = go.Figure()
    for (name, line), (colour, text), dash in zip(lines.items(), COLOURS, DASHES):
        hover = [f"{name}: {bytes_text(n)} in {seconds_text(line[n])}" for n in sizes]
        look = {"mode": "lines", "line": {"color": colour, "width": 3, "dash": dash}}
        fig.add_scatter(x=sizes, y=[line[n] for n in sizes], name=escaped(name), text=hover, hoverinfo="text", **look)
        aside = 14 if marks.get(name) == sizes[-1] else 6  # beside its own mark
        end = {"x": log10(sizes[-1]), "y": heights[name], "xanchor": "left", "xshift": aside, "showarrow": False}
        fig.add_annotation(text=escaped(name), font={"size": 13, "color": text}, **end)
    if marks:
        mark = {"symbol": "diamond-open", "size": 12, "color": INK, "line": {"width": 2}}
        x, y = list(marks.values()), [lines[name][n] for name, n in marks.items()]
        fig.add_scatter(x=x, y=y, mode="markers", marker=mark, hoverinfo="skip", cliponaxis=False)
    return fig


def _dot(fig: go.Figure, lines: Mapping[str, Line], dots: Mapping[str, Line]) -> None:
    for name, (colour, _), shape in zip(lines, COLOURS, SHAPES):
        if ran := dots.get(name, {}):
            hover = [f"{name}, measured: {bytes_text(n)} in {seconds_text(v)}" for n, v in ran.items()]
            mark = {"symbol": shape, "size": 10, "color": colour, "line": {"color": INK, "width": 1}}
            x, y = list(ran), list(ran.values())
            fig.add_scatter(x=x, y=y, text=hover, hoverinfo="text", mode="markers", marker=mark, cliponaxis=False)


def said_of(dots: Mapping[str, Line]) -> str:
    """What was measured, in words; nothing where nothing was."""
    said = [f"{name} {seconds_text(v)} at {bytes_text(n)}" for name, line in dots.items() for n, v in line.items()]
    return f"Measured: {', '.join(said)}." if said else ""


def _words(lines: Mapping[str, Line], sizes: Sequence[int], marks: Mapping[str, int]) -> list[str]:
    first, last = sizes[0], sizes[-1]
    said = []
    for name, line in lines.items():
        at = marks.get(name, first)
        here = f", {seconds_text(line[at])} at {bytes_text(at)}" if at not in (first, last) else ""
        ends = f"{seconds_text(line[first])} at {bytes_text(first)}, {seconds_text(line[last])} at {bytes_text(last)}"
        said.append(f"{name}: {ends}{here}.")
    for (one, first_line), (other, second_line) in combinations(lines.items(), 2):
        said += [f"{one} and {other} cross at {bytes_text(n)}." for n in crossings(first_line, second_line)]
    return said


def _rows(lines: Mapping[str, Line], sizes: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    return (("bytes", *lines), *((f"{n:,}", *(seconds_text(line[n]) for line in lines.values())) for n in sizes))
