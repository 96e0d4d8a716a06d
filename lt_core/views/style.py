"""The house style: one template, one palette, one fill for each kind of action.

forward blue, plain     backward amber \\\\     weights green xx     update pale pink, plain
send white //           receive white \\\\      receive and add blue //       waiting white ..

Every colour is doubled by a hatch, a shape or a letter, so that a figure reads without colour. Line colours: Okabe and
Ito 2008. The template is given to our own figures; the user's default is not touched.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from lt_core.base.action import Op
from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text, seconds_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

INK, PALE, AXIS, GRID = "#1F2933", "#52606D", "#9AA5B1", "#E4E7EB"
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9"
BROWN = "#8A5A00"  # text that belongs to an orange line: orange itself is too pale to read on white
FONT = "'Liberation Sans', Arial, Helvetica, 'DejaVu Sans', sans-serif"
DASHES = ("solid", "dash", "dot", "dashdot")
TOP, BOTTOM, LANE, ROW, CURVES = 64, 72, 36, 60, 380  # pixels: margins; a Gantt's lane, a row of witnesses, curves
TITLE, SUBTITLE = 60, 84  # characters that fit in one line of a figure 568 pixels wide


class Fill(NamedTuple):
    """How a kind of bar looks: its name in the legend, its colour, and the hatch over it."""

    name: str
    colour: str
    hatch: str = ""
    hatch_colour: str = INK
    opacity: float = 0.7
    size: int = 9

    def marker(self, border: float = 1.0) -> dict[str, Any]:
        """Plotly's marker for a bar with this fill and a border of so many pixels."""
        pattern = {"shape": self.hatch, "size": self.size, "solidity": 0.15, "fillmode": "overlay"}
        pattern |= {"fgcolor": self.hatch_colour, "fgopacity": self.opacity, "bgcolor": self.colour}
        return {"color": self.colour, "line": {"color": INK, "width": border}, "pattern": pattern}


FORWARD = Fill("forward", "#86BCEB")
BACKWARD = Fill("backward", "#F5C25B", "\\")
WEIGHTS = Fill("weights", "#3FA07E", "x", opacity=0.45)
UPDATE = Fill("update", "#F6DDE8")
SEND = Fill("send", "#FFFFFF", "/", SKY, 1.0)
RECEIVE = Fill("receive", "#FFFFFF", "\\", SKY, 1.0)
REDUCE_SCATTER = Fill("receive and add", "#86BCEB", "/", "#FFFFFF")
ALL_GATHER = Fill("receive a copy", "#F5C25B")
WORK = Fill("work", "#A9BACA")
COLLECTIVE = Fill("collective", "#D3E8F8")
OTHER = Fill("other", "#CBD2D9", "|", "#FFFFFF")
WAITING = Fill("waiting", "#FFFFFF", ".", AXIS, 1.0, 6)
FILLS = (
    FORWARD, BACKWARD, WEIGHTS, UPDATE, WORK, SEND, RECEIVE, REDUCE_SCATTER, ALL_GATHER, COLLECTIVE, OTHER, WAITING,
)  # fmt: skip

_KINDS = {
    FORWARD: (Op.F, Op.C, Op.N),
    BACKWARD: (Op.B, Op.I),
    WEIGHTS: (Op.W,),
    UPDATE: (Op.U,),
    SEND: (Op.SEND, Op.SEND_F, Op.SEND_B, Op.OUT),
    RECEIVE: (Op.COPY_F, Op.COPY_B, Op.IN),
    REDUCE_SCATTER: (Op.ADD, Op.SCATTER),
    ALL_GATHER: (Op.COPY, Op.GATHER),
    OTHER: (Op.DROP, Op.FREE),
}
FILL_OF = {op: fill for fill, ops in _KINDS.items() for op in ops}


@cache
def template() -> go.layout.Template:
    """The template `lt`, registered with plotly under this name on the first call, never made its default."""
    import plotly.graph_objects as go
    import plotly.io as pio

    font = {"family": FONT, "size": 13, "color": INK}
    axis = {"automargin": True, "showline": True, "linecolor": AXIS, "linewidth": 1, "zeroline": False}
    axis |= {"ticks": "outside", "ticklen": 4, "tickcolor": AXIS, "gridcolor": GRID, "tickfont": {"size": 13}}
    axis |= {"title": {"font": {"size": 14}, "standoff": 8}}
    title = {"x": 0, "xanchor": "left", "xref": "container", "y": 1, "yanchor": "top", "yref": "container"}
    title |= {"pad": {"l": 12, "t": 12, "b": 8}, "font": {"size": 16, "weight": 600}}
    title |= {"subtitle": {"font": {"size": 13, "color": PALE}}}
    legend = {"orientation": "h", "x": 0, "xref": "container", "xanchor": "left", "font": {"size": 13}}
    legend |= {"y": 0, "yref": "container", "yanchor": "bottom", "title": {"text": ""}}
    layout = {
        "font": {**font, "size": 14},
        "title": title,
        "paper_bgcolor": "#FFFFFF",
        "plot_bgcolor": "#FFFFFF",
        "colorway": [BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY],
        "margin": {"l": 8, "r": 24, "t": TOP, "b": BOTTOM, "pad": 0},
        "xaxis": axis,
        "yaxis": axis,
        "bargap": 0.28,
        "bargroupgap": 0.08,
        "legend": legend,
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "#FFFFFF", "bordercolor": AXIS, "font": font, "align": "left"},
        "modebar": {"remove": ["select2d", "lasso2d", "autoScale2d", "sendDataToCloud"], "orientation": "v"},
        "uniformtext": {"minsize": 10, "mode": "hide"},
        "dragmode": "pan",
    }
    pio.templates["lt"] = go.layout.Template(layout=layout)
    return pio.templates["lt"]


def sized(fig: go.Figure, height: float) -> go.Figure:
    """The figure in the house template, `height` pixels high and as wide as the page lets it be."""
    return fig.update_layout(template=template(), height=round(height), width=None, autosize=True)


def titled(fig: go.Figure, title: str, under: str = "") -> go.Figure:
    """The figure with its finding above and, smaller, where it was measured. Errors: text that one line cannot hold."""
    for text, most, what in ((title, TITLE, "title"), (under, SUBTITLE, "line under a title")):
        if len(text) > most:
            raise UserError(f"{text!r} is too long", f"{len(text)} characters", f"a {what} of at most {most}")
    return fig.update_layout(title_text=escaped(title), title_subtitle_text=escaped(under))


def escaped(text: str) -> str:
    """The text as plotly must get it, which reads `<` as the start of a tag."""
    return html.escape(text, quote=False)


def bytes_ticks(lowest: int, highest: int) -> dict[str, Any]:
    """A log axis from 10**lowest to 10**highest bytes: decades only, with their unit: 1 kB, 10 kB, 100 kB, 1 MB."""
    values = [10**k for k in range(lowest, highest + 1)]
    return {"type": "log", "tickvals": values, "ticktext": [bytes_text(v) for v in values], "minor_ticks": ""}


def seconds_ticks(lowest: int, highest: int, digits: Sequence[int] = (1,)) -> dict[str, Any]:
    """A log axis from 10**lowest to 10**highest seconds, with their unit: 10 us, 100 us, 1 ms.

    digits: decades only, or (1, 2, 5) where these would be a tick or two.
    """
    values = [digit * 10.0**k for k in range(lowest, highest + 1) for digit in digits]
    return {"type": "log", "tickvals": values, "ticktext": [seconds_text(v) for v in values], "minor_ticks": ""}
