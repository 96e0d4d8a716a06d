"""How something went: a number against time, a line a way of doing it, each named at its end, or below if many.

accuracy |     .--'' quorum        a line is [(time, value), ...]; a dashed level line where a bound stands
         |  .-'_.-'' synchronous
         |_______________ emulated seconds
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

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
) -> Figure:
    """The picture of up to six lines. x, y: what the axes show.  between: where the y axis begins and ends.

    exact: whether the numbers come from no clock of this machine, so that its words are compared between two runs.
    Errors: no line, more than six, a line without a point.
    """
    if not 1 <= len(lines) <= len(LOOKS):
        raise UserError("lines that can be told apart", f"{len(lines)} lines", f"1 to {len(LOOKS)}")
    if empty := [name for name, line in lines.items() if not line]:
        raise UserError(f"{empty[0]} has no point", expected="at least one (time, value)")
    fig = _named(_draw(lines), lines, between)
    fig.update_yaxes(showgrid=True, title_text=y, range=list(between) if between else None)
    starts, ends = zip(*((line[0][0], line[-1][0]) for line in lines.values()))
    fig.update_xaxes(title_text=x, range=[min(starts), max(ends)])  # the names stand beside the axes
    said = " ".join(_words(name, line, between) for name, line in lines.items())
    first = f"{title}. {y[0].upper()}{y[1:]} against {x}."
    rows = (
        ("", f"first {y}", f"last {y}"),
        *((n, f"{line[0][1]:.3g}", f"{line[-1][1]:.3g}") for n, line in lines.items()),
    )
    return Figure(titled(fig, title, under), f"{first} {said}" if exact else first, "" if exact else said, rows)


def _ends(lines: Mapping[str, Line], between: tuple[float, float] | None) -> dict[str, float]:
    """At which height each name stands: its line's end, moved until none covers another."""
    values = [v for line in lines.values() for _, v in line]
    low, high = between or (min(values), max(values))
    return apart({name: min(max(line[-1][1], low), high) for name, line in lines.items()}, high - low)


def _draw(lines: Mapping[str, Line]) -> go.Figure:
    import plotly.graph_objects as go

    fig = go.Figure()
    for (name, line), (colour, _, dash) in zip(lines.items(), LOOKS):
        look = {"mode": "lines", "line": {"color": colour, "width": 3, "dash": dash}, "name": escaped(name)}
        fig.add_scatter(x=[x for x, _ in line], y=[y for _, y in line], **look)
    return fig


def _named(fig: go.Figure, lines: Mapping[str, Line], between: tuple[float, float] | None) -> go.Figure:
    """Up to four names stand beside the axes, at the lines' ends; more are a legend, which shows the dashes."""
    if len(lines) > AT_END:
        fig.update_layout(showlegend=True, margin_b=BOTTOM + ROW)
        return sized(fig, CURVES + ROW)
    heights, right = _ends(lines, between), max(line[-1][0] for line in lines.values())
    for (name, line), (_, text, _) in zip(lines.items(), LOOKS):
        x = line[-1][0] if line[-1][0] < EARLY * right else right
        place = {"x": x, "y": heights[name], "xanchor": "left", "xshift": 6, "showarrow": False}
        fig.add_annotation(text=escaped(name), font={"size": 13, "color": text}, **place)
    fig.update_layout(margin_r=round(24 + NAME * max(map(len, lines))), showlegend=False)
    return sized(fig, CURVES)


def _words(name: str, line: Line, between: tuple[float, float] | None) -> str:
    outside = between and not between[0] <= line[-1][1] <= between[1]
    end = "out of the picture" if outside else f"{line[-1][1]:.3g}"
    return f"{name}: from {line[0][1]:.3g} to {end} at {line[-1][0]:.4g}."
