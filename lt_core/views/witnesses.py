"""Three witnesses on one axis: what the law says, what the simulation says, what was measured.

ring   ////////////////////◇  12,288          law: open diamond; simulated: hatched bar; measured: solid bar,
       ████████████████████◇  (all equal)     always in this order
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from lt_core.base.errors import UserError
from lt_core.base.units import seconds_text
from lt_core.views.show import Figure
from lt_core.views.style import BLUE, BOTTOM, GRID, INK, ROW, TOP, Fill, escaped, sized, titled

if TYPE_CHECKING:
    import plotly.graph_objects as go

SIMULATED = Fill("simulated", "#FFFFFF", "/", BLUE, 1.0)
EQUAL_ROOM, OTHER_ROOM = 1.22, 1.4  # of the longest bar: where the axis ends, so that the labels find room


class Three(NamedTuple):
    """What the three say of one quantity; None where one was not asked."""

    law: float | None = None
    simulated: float | None = None
    measured: float | None = None

    def given(self) -> dict[str, float]:
        """Those that were asked, by name."""
        return {name: value for name, value in self._asdict().items() if value is not None}

    def agree(self) -> bool:
        """Whether all that were asked say the same, to the digit."""
        return len(set(self.given().values())) <= 1


def witnesses(rows: Mapping[str, Three], *, title: str, under: str, unit: str = "bytes") -> Figure:
    """The picture of one quantity, a row a case. unit: its plural, such as "messages"; "s" for seconds.

    under: on what it was measured, which no such picture may leave out. Errors: no rows, a row without a value.
    """
    empty = [name for name, three in rows.items() if not three.given()]
    if not rows or empty:
        raise UserError("nothing to compare", f"no value for {', '.join(empty) or 'any row'}", "a law or a value a row")
    say, scale, name = _sayer(max(max(three.given().values()) for three in rows.values()), unit)
    fig = sized(_draw(rows, scale, say), TOP + BOTTOM + ROW * len(rows))
    fig.update_xaxes(title_text=escaped(name))
    return _worded(titled(fig, title, under), f"{title}.", rows, unit)


def _sayer(largest: float, unit: str) -> tuple[Callable[[float], str], float, str]:
    """How a value is written, what the axis divides by, and its name."""
    if unit != "s":
        return _plain, 1.0, unit
    scale, name = next(((s, n) for s, n in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")) if largest >= s), (1e-9, "ns"))
    return seconds_text, scale, name


def _draw(rows: Mapping[str, Three], scale: float, say: Callable[[float], str]) -> go.Figure:
    import plotly.graph_objects as go

    names = [_name(name) for name in rows]
    threes = list(rows.values())
    hover = [[f"{key} {say(value)}" for key, value in three.given().items()] for three in threes]
    shared = {"y": names, "hovertext": ["<br>".join(lines) for lines in hover], "hoverinfo": "text"}
    lengths = {
        key: [None if value is None else value / scale for value in values]
        for key, values in zip(Three._fields, zip(*threes))
    }
    fig = go.Figure()
    diamond = {"symbol": "diamond-open", "size": 14, "color": INK, "line": {"width": 2}}
    fig.add_scatter(x=lengths["law"], name="law", mode="markers", marker=diamond, cliponaxis=False, **shared)
    hatched, solid = SIMULATED.marker(1.5), {"color": BLUE, "line": {"color": BLUE, "width": 1.5}}
    hatched["line"]["color"] = BLUE
    for name, marker in (("simulated", hatched), ("measured", solid)):
        if any(x is not None for x in lengths[name]):  # else the legend would name what is not there
            fig.add_bar(x=lengths[name], name=name, orientation="h", marker=marker, **shared)
    ends = [max(three.given().values()) / scale for three in threes]
    for name, end, three in zip(names, ends, threes):
        fig.add_annotation(
            x=end, y=name, text=_label(three, say), xanchor="left", xshift=12, showarrow=False, align="left"
        )
    room = EQUAL_ROOM if all(three.agree() for three in threes) else OTHER_ROOM
    fig.update_annotations(font_size=13, borderpad=0, bgcolor="#FFFFFF")
    fig.update_xaxes(range=[0, room * (max(ends) or 1)], gridcolor=GRID, tickformat=",", nticks=5, tickangle=0)
    fig.update_yaxes(type="category", autorange="reversed", showgrid=False, ticks="", fixedrange=True)
    return fig.update_layout(barmode="group", legend_traceorder="normal")


def _name(name: str) -> str:
    return "<br>".join(textwrap.wrap(escaped(name), 20))


def _label(three: Three, say: Callable[[float], str]) -> str:
    given = three.given()
    if three.agree():
        count = {1: "", 2: "<br>(both equal)", 3: "<br>(all equal)"}[len(given)]
        return say(next(iter(given.values()))) + count
    return "<br>".join(f"{name} {say(value)}" for name, value in given.items())


def _worded(fig: go.Figure, first: str, rows: Mapping[str, Three], unit: str) -> Figure:
    say = seconds_text if unit == "s" else _plain
    table = (("", *Three._fields, "why they differ"), *(_row(name, three, say, unit) for name, three in rows.items()))
    exact, clocks = [first], []
    for name, three in rows.items():
        given = three.given()
        if unit == "s":  # what a clock said differs from run to run
            measured = given.pop("measured", None)
            clocks += [f"{name}: measured {seconds_text(measured)}."] if measured is not None else []
            exact += [f"{name}: {', '.join(f'{k} {seconds_text(v)}' for k, v in given.items())}."] if given else []
        elif three.agree():
            exact.append(f"{name}: {' = '.join(given)} = {next(iter(given.values())):,} {unit}.")
        else:
            exact.append(f"{name}: {', '.join(f'{k} {v:,}' for k, v in given.items())} {unit}, which differ.")
    return Figure(fig, " ".join(exact), " ".join(clocks), table)


def _row(name: str, three: Three, say: Callable[[float], str], unit: str) -> tuple[str, ...]:
    values = ["–" if value is None else say(value) for value in three]
    if three.agree():
        return (name, *values, "all equal")
    return (name, *values, _seconds_apart(three) if unit == "s" else "they should not: something is wrong")


def _seconds_apart(three: Three) -> str:
    """What seconds that differ are made of: what the law (or else the simulation) prices, and what nobody does."""
    priced, by = (three.simulated, "simulation") if three.law is None else (three.law, "law")
    said, by_whom = (three.simulated, "simulated") if three.measured is None else (three.measured, "measured")
    if priced is None or said is None or said == priced:
        return f"{by_whom} as the {by} says"
    if said < priced or by_whom == "simulated":
        more, takes = ("less", "one thing after the other") if said < priced else ("more", "all chunks as even")
        return f"{by_whom} {seconds_text(abs(said - priced))} {more} than the {by}, which takes {takes}"
    rest = f"{seconds_text(said - priced)} ({1 - priced / said:.0%})"
    return f"{seconds_text(priced)} by the {by}; the other {rest}: waiting, waking up, adding"


def _plain(value: float) -> str:
    return f"{value:,}"
