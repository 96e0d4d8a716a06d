"""How something went: a number against time, a line a way of doing it, each named at its end, or below if many.

accuracy |     .--'' quorum        a line is [(time, value), ...]; a dashed level line where a bound stands
         |  .-'_.-'' synchronous
         |_______________ emulated seconds
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from lt_core.base.errors import UserError
from lt_core.views.curves import NAME, apart
from lt_core.views.show import Figure
from lt_core.views.style import (
    BLUE,
    BOTTOM,
    BROWN,
    CURVES,
    DASHES,
    GREEN,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    escaped,
    sized,
    titled,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

Line = Sequence[tuple[float, float]]
LOOKS = (  # colour, colour of the name, dash: of each line in turn
    (BLUE, BLUE, DASHES[0]), (ORANGE, BROWN, DASHES[1]), (GREEN, GREEN, DASHES[2]), (PURPLE, INK, DASHES[3]),
    (SKY, BLUE, "longdash"), (INK, INK, "longdashdot"),
)  # fmt: skip
TINY = 1e-3  # of a line's largest value: no eye tells it from 0 where the axis is no logarithm
AT_END, EARLY, ROW = 4, 0.6, 20  # names that find room; of the time, an end that has its name there; pixels


def courses(
    lines: Mapping[str, Line],
    *,
    title: str,
    under: str,
    x: str,
    y: str,
    between: tuple[float, float] | None = None,
    exact: bool = True,
    log_x: bool = False,
    log_y: bool = False,
) -> Figure:
    """The picture of up to six lines. x, y: what the axes show.  between: where the y axis begins and ends.

    exact: whether the numbers come from no clock of this machine, so that its words are compared between two runs.
    log_x, log_y: a logarithmic axis, of decades. Errors: no line, more than six, a line without a point, one that is
    not above 0 on a logarithmic axis.
    """
    if not 1 <= len(lines) <= len(LOOKS):
        raise UserError("lines that can be told apart", f"{len(lines)} lines", f"1 to {len(LOOKS)}")
    if empty := [name for name, line in lines.items() if not line]:
        raise UserError(f"{empty[0]} has no point", expected="at least one (time, value)")
    xs, ys = ([point[k] for line in lines.values() for point in line] for k in (0, 1))
    for name, values, log in ((x, xs, log_x), (y, ys, log_y)):
        if log and min(values) <= 0:
            raise UserError(f"{name} has no place on a logarithmic axis", min(values), "numbers above 0")
    fig = _named(_draw(lines), lines, between, log_x, log_y)
    fig.update_yaxes(title_text=y, **_axis(ys, log_y), showgrid=True)
    fig.update_yaxes(range=[_at(v, log_y) for v in between] if between else None)
    starts, ends = zip(*((line[0][0], line[-1][0]) for line in lines.values()))
    fig.update_xaxes(title_text=x, **_axis(xs, log_x))
    fig.update_xaxes(range=[_at(min(starts), log_x), _at(max(ends), log_x)])  # the names stand beside the axes
    said = " ".join(_words(name, line, between, log_y) for name, line in lines.items())
    first = f"{title}. {y[0].upper()}{y[1:]} against {x}."
    rows = (
        ("", f"first {y}", f"last {y}"),
        *((n, _value(line, 0, log_y), _value(line, -1, log_y)) for n, line in lines.items()),
    )
    return Figure(titled(fig, title, under), f"{first} {said}" if exact else first, "" if exact else said, rows)


def _at(value: float, log: bool) -> float:
    """Where plotly has a value: on a logarithmic axis at its logarithm."""
    return log10(value) if log else value


def _axis(values: Sequence[float], log: bool) -> dict[str, Any]:
    """A logarithmic axis has a tick a decade; of others plotly takes care, but for the comma in thousands."""
    if not log:
        return {"tickformat": ","}
    ticks = [10.0**k for k in range(floor(log10(min(values))), ceil(log10(max(values))) + 1)]
    texts = [f"{v:,.0f}" if v >= 1 else f"{v:g}" for v in ticks]
    return {"type": "log", "tickvals": ticks, "ticktext": texts, "minor_ticks": ""}


def _ends(lines: Mapping[str, Line], between: tuple[float, float] | None, log: bool) -> dict[str, float]:
    """At which height each name stands: its line's end, moved until none covers another."""
    values = [v for line in lines.values() for _, v in line]
    low, high = (_at(v, log) for v in between or (min(values), max(values)))
    ends = {name: _at(line[-1][1], log) for name, line in lines.items()}
    return apart({name: min(max(end, low), high) for name, end in ends.items()}, high - low)


def _draw(lines: Mapping[str, Line]) -> go.Figure:
    import plotly.graph_objects as go

    fig = go.Figure()
    for (name, line), (colour, _, dash) in zip(lines.items(), LOOKS):
        look = {"mode": "lines", "line": {"color": colour, "width": 3, "dash": dash}, "name": escaped(name)}
        fig.add_scatter(x=[x for x, _ in line], y=[y for _, y in line], **look)
    return fig


def _named(
    fig: go.Figure, lines: Mapping[str, Line], between: tuple[float, float] | None, log_x: bool, log_y: bool
) -> go.Figure:
    """Up to four names stand beside the axes, at the lines' ends; more are a legend, which shows the dashes."""
    if len(lines) > AT_END:
        fig.update_layout(showlegend=True, margin_b=BOTTOM + ROW)
        return sized(fig, CURVES + ROW)
    heights, right = _ends(lines, between, log_y), max(line[-1][0] for line in lines.values())
    for (name, line), (_, text, _) in zip(lines.items(), LOOKS):
        x = line[-1][0] if line[-1][0] < EARLY * right else right
        place = {"x": _at(x, log_x), "y": heights[name], "xanchor": "left", "xshift": 6, "showarrow": False}
        fig.add_annotation(text=escaped(name), font={"size": 13, "color": text}, **place)
    fig.update_layout(margin_r=round(24 + NAME * max(map(len, lines))), showlegend=False)
    return sized(fig, CURVES)


def _words(name: str, line: Line, between: tuple[float, float] | None, log: bool) -> str:
    outside = between and not between[0] <= line[-1][1] <= between[1]
    end = "out of the picture" if outside else _value(line, -1, log)
    return f"{name}: from {_value(line, 0, log)} to {end} at {line[-1][0]:,.4g}."


def _value(line: Line, k: int, log: bool) -> str:
    """A line's k-th value; `about 0` for the 4e-11 that it ends with, having begun at 1."""
    value, largest = line[k][1], max(abs(v) for _, v in line)
    return f"{value:.3g}" if log or not value or abs(value) >= TINY * largest else "about 0"
