"""What was guessed, as a dashed line across the picture of what was measured."""

from __future__ import annotations

from dataclasses import replace
from math import log10
from typing import TYPE_CHECKING, Any

from lt_core.base.errors import UserError
from lt_core.views.controls import text
from lt_core.views.show import Figure
from lt_core.views.style import BROWN, escaped

if TYPE_CHECKING:
    import plotly.graph_objects as go

ROOM = 20  # pixels above the axes, for the words of a line that stands upright
BEYOND = 1.08  # of the guess: where an axis ends that would have left it out


def with_guess(figure: Figure, value: float | None, label: str = "your guess", axis: str = "") -> Figure:
    """A copy of the figure with a dashed line at `value`, named; the figure itself where there is no guess.

    value: in the unit of the axis.  axis: "x" for an upright line, "y" for a level one; where it is not given, the one
    along which lying bars run, else "y". Errors: a guess that is no number, or none that a logarithmic axis has.
    """
    if value is None:
        return figure
    along = axis or ("x" if any(t.type == "bar" and t.orientation == "h" for t in figure.figure.data) else "y")
    fig = _copied(figure.figure)
    logarithmic = fig.layout[f"{along}axis"].type == "log"
    if not abs(value) < float("inf") or (logarithmic and value <= 0):
        raise UserError(f"{label} is on no axis", text(value), "a number above 0" if logarithmic else "a number")
    words = f"{label} {text(value)}"
    _line(fig, along, value, words, log10(value) if logarithmic else value)
    ends = (log10(value / BEYOND), log10(value * BEYOND)) if logarithmic else (value, value * BEYOND)
    _widen(fig.layout[f"{along}axis"], min(ends), max(ends))
    return replace(figure, figure=fig, words=f"{figure.words} {words[0].upper()}{words[1:]}: a dashed line.")


def _copied(fig: go.Figure) -> go.Figure:
    import plotly.graph_objects as go

    return go.Figure(fig)


def _line(fig: go.Figure, along: str, value: float, words: str, at: float) -> None:
    """The line, on white so that it is seen over bars, and its name, which plotly places by the logarithm on a
    logarithmic axis."""
    across = "y" if along == "x" else "x"
    ends = {
        f"{along}0": value,
        f"{along}1": value,
        f"{across}0": 0,
        f"{across}1": 1,
        f"{across}ref": f"{across} domain",
    }
    for look in ({"color": "#FFFFFF", "width": 5}, {"color": BROWN, "width": 2, "dash": "dash"}):
        fig.add_shape(type="line", line=look, **ends)
    name: dict[str, Any] = {"text": escaped(words), "showarrow": False, "font": {"size": 13, "color": BROWN}}
    name |= {along: at, across: 1, f"{across}ref": f"{across} domain", "yanchor": "bottom", "yshift": 3}
    fig.add_annotation(xanchor="center" if along == "x" else "right", **name)
    if along == "x":
        above = fig.layout.margin.t if fig.layout.margin.t is not None else fig.layout.template.layout.margin.t or 80
        fig.update_layout(margin_t=above + ROOM, height=fig.layout.height + ROOM if fig.layout.height else None)


def _widen(axis: Any, low: float, high: float) -> None:
    """Move the ends of an axis whose range is fixed, so that it reaches from `low` to `high`; plotly sees to others."""
    if axis.range is not None:
        first, last = axis.range
        low, high = min(low, first, last), max(high, first, last)
        axis.range = (low, high) if first <= last else (high, low)
