"""Who wins where: a letter a winner, a row a case, bytes to the right.

8 ranks | A  A  A  B  B  B        A recursive doubling    each winner has a colour and a letter, so that
7 ranks | A  A  A  A  C  C        B halving-doubling      the map reads without colour
        +-----------------        C ring
          1 kB      100 MB
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from string import ascii_uppercase
from typing import TYPE_CHECKING

from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text
from lt_core.views.show import Figure
from lt_core.views.style import BOTTOM, INK, TOP, escaped, sized, titled

if TYPE_CHECKING:
    import plotly.graph_objects as go

Row = Mapping[int, str]  # the winner by bytes
TINTS = ("#86BCEB", "#F5C25B", "#3FA07E", "#E98A5B", "#F6DDE8", "#8FD0F5", "#A9BACA", "#FFFFFF")  # as crossover's
ROW, LEGEND_ROW = 30, 22  # pixels


def winner_map(
    rows: Mapping[str, Row], order: Sequence[str] = (), *, title: str, under: str, x: str = "bytes of the tensor"
) -> Figure:
    """The map of up to eight winners: of each row, such as "8 ranks", the winner by bytes. x: what the bytes are of.

    order: all that could win, so that each keeps its letter and colour from map to map; the colours are those of
    `crossover`'s lines in this order. Errors: no row, rows that are not over the same bytes, more names than colours.
    """
    sizes = _checked(rows, order)
    won, known = _winners(rows), dict(zip(_names(rows, order), ascii_uppercase))
    letters = {name: letter for name, letter in known.items() if name in won}
    places = {name: k for k, name in enumerate(known)}
    below = BOTTOM + LEGEND_ROW * (1 + len(letters) // 4)
    fig = sized(_draw(rows, sizes, letters, places), TOP + below + ROW * len(rows))
    decades = [n for n in sizes if str(n).strip("0") == "1"]
    fig.update_xaxes(tickvals=[sizes.index(n) for n in decades], ticktext=[bytes_text(n) for n in decades])
    fig.update_xaxes(title_text=x, showgrid=False, fixedrange=True)
    fig.update_yaxes(autorange="reversed", showgrid=False, ticks="", fixedrange=True)
    fig.update_layout(margin_b=below)
    words = " ".join([f"{title}.", *(_who(rows, n) for n in dict.fromkeys([sizes[0], sizes[-1]]))])
    table = ("", "who wins, from how many bytes on"), *((name, _stretches(row)) for name, row in rows.items())
    return Figure(titled(fig, title, under), words, rows=table)


def _checked(rows: Mapping[str, Row], order: Sequence[str]) -> list[int]:
    if not rows:
        raise UserError("a map of nothing", "no row", "at least one")
    sizes = sorted(next(iter(rows.values())))
    for name, row in rows.items():
        if sorted(row) != sizes or not sizes:
            raise UserError(f"{name} is not over the same bytes", sorted(row), sizes or "at least one size")
    if len(names := _names(rows, order)) > len(TINTS):
        raise UserError("winners that can be told apart", f"{len(names)} of them", f"at most {len(TINTS)}")
    return sizes


def _winners(rows: Mapping[str, Row]) -> list[str]:
    """All winners, in the order in which one meets them."""
    return list(dict.fromkeys(row[n] for row in rows.values() for n in sorted(row)))


def _names(rows: Mapping[str, Row], order: Sequence[str]) -> list[str]:
    """Who has a letter: all of `order`, then who wins besides."""
    return list(dict.fromkeys([*order, *_winners(rows)]))


def _draw(
    rows: Mapping[str, Row], sizes: Sequence[int], letters: Mapping[str, str], places: Mapping[str, int]
) -> go.Figure:
    import plotly.graph_objects as go

    fig = go.Figure()
    fig.add_heatmap(
        z=[[places[row[n]] for n in sizes] for row in rows.values()],
        y=[escaped(name) for name in rows],
        text=[[letters[row[n]] for n in sizes] for row in rows.values()],
        texttemplate="%{text}",
        textfont={"size": 13, "color": INK, "weight": 600},
        hovertext=[[escaped(f"{name}, {bytes_text(n)}: {row[n]}") for n in sizes] for name, row in rows.items()],
        hoverinfo="text", colorscale=_steps(), zmin=-0.5, zmax=len(TINTS) - 0.5, showscale=False, xgap=1, ygap=1,
    )  # fmt: skip
    for name, letter in letters.items():
        mark = {"symbol": "square", "size": 14, "color": TINTS[places[name]], "line": {"color": INK, "width": 1}}
        fig.add_scatter(x=[None], y=[None], mode="markers", marker=mark, name=escaped(f"{letter} {name}"))
    return fig.update_layout(showlegend=True)


def _steps() -> list[list[float | str]]:
    """A colour scale without passage: from k to k + 1 all is the colour k."""
    ends = [(k / len(TINTS), (k + 1) / len(TINTS), tint) for k, tint in enumerate(TINTS)]
    return [[end, tint] for low, high, tint in ends for end in (low, high)]


def _who(rows: Mapping[str, Row], nbytes: int) -> str:
    """`At 100 MB: ring (3 ranks, 5 ranks), torus (6 ranks).`"""
    won: dict[str, list[str]] = {}
    for name, row in rows.items():
        won.setdefault(row[nbytes], []).append(name)
    said = ", ".join(f"{winner} ({', '.join(names)})" for winner, names in won.items())
    return f"At {bytes_text(nbytes)}: {said if len(won) > 1 else f'{next(iter(won))}, everywhere'}."


def _stretches(row: Row) -> str:
    """`recursive doubling, from 32 kB on ring`."""
    (first, _), *others = [(name, min(sizes)) for name, sizes in groupby(sorted(row), key=lambda n: row[n])]
    return ", ".join([first, *(f"from {bytes_text(start)} on {name}" for name, start in others)])
