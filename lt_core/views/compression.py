"""Error against bytes on two logarithmic axes: a letter a method, and who gives the least error for so many bytes.

error 10 |  A                       filled: what is lost is remembered; open: it is lost
         |    . o B                 line: the frontier; what lies to its right and above it costs more and errs more
      1  |________. C        :
           10 kB   100 kB    1 MB   upright: what the exact mean sends
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, inf, isfinite, log10
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any, NamedTuple

from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text
from lt_core.views.letters import beside
from lt_core.views.show import Figure
from lt_core.views.style import BLUE, BOTTOM, INK, PALE, TOP, bytes_ticks, escaped, sized, titled

if TYPE_CHECKING:
    import plotly.graph_objects as go

LEGEND_ROW = 20  # pixels, of three names
PLOT = (480, 340)  # pixels of the narrowest picture between its axes: letters that are free there are free in a wider


class Point(NamedTuple):
    """What a method sends, how far the mean it gives is from the exact one, and whether it remembers what it lost."""

    nbytes: int
    error: float
    feedback: bool = False


def compression(
    points: Mapping[str, Point], dense_bytes: int = 0, *, title: str, under: str, least: float = 0.0
) -> Figure:
    """The picture of up to 26 methods. dense_bytes: what the exact mean sends, an upright line; it has no error.

    least: where the axis of errors ends, so that one that is far below does not squeeze all others; who errs less
    stands on the edge, as a triangle with its number. Errors: no point, more than letters, bytes or an error that have
    no place on logarithmic axes.
    """
    _check(points, least)
    best = frontier(points)
    seen = {name: p._replace(error=max(p.error, least)) for name, p in points.items()}
    errors = [*(p.error for p in seen.values()), 1.0]  # 1: what it errs who sends nothing
    below = BOTTOM + LEGEND_ROW * ceil(len(points) / 3)
    fig = sized(_draw(points, seen, best, dense_bytes), TOP + PLOT[1] + below)
    sizes = [p.nbytes for p in points.values()] + [dense_bytes] * bool(dense_bytes)
    ends = _ends(sizes), [log10(least) - 0.03 if least else _ends(errors)[0], _ends(errors)[1]]
    fig.update_xaxes(**bytes_ticks(*_decades(sizes)), range=ends[0], title_text="bytes a rank sends")
    fig.update_yaxes(**_ticks(*_decades(errors), ends[1][1] - ends[1][0]), range=ends[1], title_text="error")
    fig.update_layout(margin_b=below)
    _letters(fig, points, seen, ends)
    told = "; ".join(f"{name} {points[name].error:.3g}" for name in points)  # the last digits are a machine's own
    words = _words(title, points, best, dense_bytes)
    edge = [name for name in points if seen[name] != points[name]]
    who = "it errs" if len(edge) == 1 else "they err"
    words += f" On the lower edge, for {who} less than {least:g}: {'; '.join(edge)}." * bool(edge)
    return Figure(titled(fig, title, under), words, f"Errors: {told}.", _rows(points, best))


def frontier(points: Mapping[str, Point]) -> list[str]:
    """The methods that nobody beats in both, from few bytes to many."""
    best, least = [], inf
    for name, point in sorted(points.items(), key=lambda item: item[1][:2]):
        if point.error < least:
            best.append(name)
            least = point.error
    return best


def _check(points: Mapping[str, Point], least: float) -> None:
    if not 0 <= least < inf:
        raise UserError("the axis of errors ends", f"at {least:g}", "a number above 0, or 0 where its points have room")
    if not 1 <= len(points) <= len(ascii_uppercase):
        raise UserError("methods that have a letter each", f"{len(points)} of them", f"1 to {len(ascii_uppercase)}")
    for name, point in points.items():
        if not (point.nbytes > 0 and 0 < point.error < inf and isfinite(point.error)):
            raise UserError(
                f"{name} has no place on logarithmic axes", f"{point.nbytes} bytes, error {point.error:g}", "above 0"
            )


def _draw(points: Mapping[str, Point], seen: Mapping[str, Point], best: Sequence[str], dense_bytes: int) -> go.Figure:
    import plotly.graph_objects as go

    fig = go.Figure()
    line = {"color": PALE, "width": 2, "dash": "dot", "shape": "hv"}
    along = [seen[name] for name in best]
    fig.add_scatter(
        x=[p.nbytes for p in along],
        y=[p.error for p in along],
        mode="lines",
        line=line,
        name="frontier",
        hoverinfo="skip",
    )
    for letter, (name, point) in zip(ascii_uppercase, points.items()):
        shape = "circle" if seen[name] == point else "triangle-down"
        mark = {
            "symbol": shape if point.feedback else f"{shape}-open",
            "size": 12,
            "color": BLUE,
            "line": {"width": 2},
        }
        hover = f"{name}: {bytes_text(point.nbytes)}, error {point.error:.3g}"
        fig.add_scatter(
            x=[point.nbytes], y=[seen[name].error], mode="markers", marker=mark, name=escaped(f"{letter} {name}"),
            cliponaxis=False, hovertext=escaped(hover), hoverinfo="text",
        )  # fmt: skip
    if dense_bytes:
        fig.add_vline(x=dense_bytes, line={"color": INK, "width": 1, "dash": "dash"})
        fig.add_annotation(
            x=log10(dense_bytes), y=1, yref="paper", text="exact mean", xanchor="right", xshift=-4, showarrow=False
        )
    return fig


def _letters(
    fig: go.Figure, points: Mapping[str, Point], seen: Mapping[str, Point], ends: tuple[list[float], list[float]]
) -> None:
    """A letter beside each mark, with a thin line to it; the error, too, where the mark does not say it."""
    places = [(log10(p.nbytes), log10(p.error)) for p in seen.values()]
    texts = [
        letter if seen[name] == point else f"{letter} ({point.error:.1g})"
        for letter, (name, point) in zip(ascii_uppercase, points.items())
    ]
    pixels = [((v[0] - ends[0][0]), (v[1] - ends[1][0])) for v in places]
    scale = [size / (high - low) for size, (low, high) in zip(PLOT, ends)]
    moved = beside([(x * scale[0], y * scale[1]) for x, y in pixels], *PLOT)
    for letter, (x, y), (right, up) in zip(texts, places, moved):
        aside = {"ax": right, "ay": -up} if len(letter) == 1 else {"ax": 14, "ay": -4, "xanchor": "left"}
        fig.add_annotation(
            x=x, y=y, **aside, text=letter, font={"size": 14, "color": INK}, borderpad=0,
            showarrow=True, arrowhead=0, arrowwidth=1, arrowcolor=PALE, standoff=7, bgcolor="#FFFFFF",
        )  # fmt: skip


def _ends(values: Sequence[float]) -> list[float]:
    """The logarithms between which all of them have room."""
    return [log10(min(values)) - 0.12, log10(max(values)) + 0.12]


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low, high = floor(log10(min(values))), ceil(log10(max(values)))
    return low, max(high, low + 1)


def _ticks(lowest: int, highest: int, decades: float) -> dict[str, Any]:
    """Decades; where two at most are seen, 2 and 5 of each as well."""
    values = [digit * 10.0**k for k in range(lowest, highest + 1) for digit in ((1,) if decades > 2 else (1, 2, 5))]
    texts = [f"{v:g}" for v in values]
    return {"type": "log", "tickvals": values, "ticktext": texts, "minor_ticks": "", "showgrid": True}


def _words(title: str, points: Mapping[str, Point], best: Sequence[str], dense_bytes: int) -> str:
    said = [f"{title}.", f"{len(points)} methods, bytes a rank sends from {_sent(points, best[0])}"]
    said += [f"to {_sent(points, best[-1])} along the frontier of {len(best)}."] if len(best) > 1 else ["alone."]
    beaten = [name for name in points if name not in best]
    said += [f"More bytes and more error than another: {'; '.join(beaten)}."] if beaten else []
    said += [f"The exact mean sends {dense_bytes:,}."] if dense_bytes else []
    return " ".join(said)


def _sent(points: Mapping[str, Point], name: str) -> str:
    return f"{points[name].nbytes:,} ({name})"


def _rows(points: Mapping[str, Point], best: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    lines = [
        (
            f"{letter} {name}",
            f"{p.nbytes:,}",
            f"{p.error:.3g}",
            "yes" if p.feedback else "no",
            "yes" if name in best else "",
        )
        for letter, (name, p) in zip(ascii_uppercase, points.items())
    ]
    return (("method", "bytes", "error", "feedback", "frontier"), *lines)
