"""The version strip: who used which version of the weights. A bar a gradient, from the version it read to its own.

rank 0   [0][ 2 ][ 3 ][ 2 ]           the number is how many updates came in between
rank 3   [        30        ]         versions run from left to right, one an update

Drawn from the marks "staleness" of a trace: {"clock", "server", "read", "version", "written"}, one a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean
from typing import TYPE_CHECKING, NamedTuple, cast

from lt_core.base.errors import UserError
from lt_core.base.records import Mark
from lt_core.base.trace import Trace
from lt_core.views.lanes import Bar, filled
from lt_core.views.show import Figure
from lt_core.views.style import BACKWARD, BOTTOM, FORWARD, GRID, LANE, TOP, WAITING, Fill, sized, titled

if TYPE_CHECKING:
    import plotly.graph_objects as go

KIND = "staleness"
NEW = Fill("of the newest version", FORWARD.colour)
OLD = Fill("some updates old", BACKWARD.colour, BACKWARD.hatch)
DROPPED = Fill("dropped", WAITING.colour, WAITING.hatch, WAITING.hatch_colour, 1.0, WAITING.size)


class Strip(NamedTuple):
    """One gradient: its rank and clock, the versions it read and made (or was dropped at), how many updates old."""

    rank: int
    clock: int
    read: int
    version: int
    stale: int
    dropped: bool

    @property
    def fill(self) -> Fill:
        """How it looks."""
        return DROPPED if self.dropped else OLD if self.stale else NEW


def version_strip(trace: Trace, *, title: str = "", under: str = "", versions: tuple[int, int] | None = None) -> Figure:
    """The picture of one run. versions: only from that version to that one. Errors: a trace without such marks.

    Where several servers hold the weights, a gradient is drawn as the first of them saw it.
    """
    strips = _strips(trace.marks)
    if not strips:
        raise UserError(f"{trace.name} has no marks of staleness", attempt="marked(trace)")
    first, last = versions or (0, max(s.version for s in strips))
    shown = [s for s in strips if s.version > first and s.read < last]
    fig = _draw(shown, sorted({s.rank for s in strips}), first, last)
    oldest = max(strips, key=lambda s: (not s.dropped, s.stale))
    found = title or f"Rank {oldest.rank}'s oldest gradient is {_updates(oldest.stale)} old"
    titled(fig, found, under or trace.clock + (f" over {trace.backend}" if trace.backend else ""))
    ranks = len({s.rank for s in strips})
    words = f"{found}. A bar a gradient, a lane for each of {ranks} ranks, from the version read to the version made."
    said = _words(strips)
    exact = trace.clock == "simulated"  # what a clock decides differs from run to run
    return Figure(fig, f"{words} {said}" if exact else words, "" if exact else said, _rows(strips))


def _strips(marks: Sequence[Mark]) -> list[Strip]:
    """One a gradient, by rank and clock."""
    seen: dict[tuple[int, int], tuple[int, Strip]] = {}
    for m in marks:
        if m.kind == KIND:
            value = cast("dict[str, int | None]", m.value)
            clock, server, read, version = (cast(int, value[k]) for k in ("clock", "server", "read", "version"))
            strip = Strip(m.rank, clock, read, version, version - 1 - read, value["written"] is None)
            if (m.rank, clock) not in seen or server < seen[m.rank, clock][0]:
                seen[m.rank, clock] = server, strip
    return [strip for _, (_, strip) in sorted(seen.items())]


def _draw(strips: Sequence[Strip], ranks: Sequence[int], first: int, last: int) -> go.Figure:
    import plotly.graph_objects as go

    fig, beyond = go.Figure(), (last - first) / 100
    for fill in (NEW, OLD, DROPPED):
        if mine := [_bar(s, ranks.index(s.rank), first - beyond, last + beyond) for s in strips if s.fill == fill]:
            fig.add_trace(filled(mine, fill))
    places = list(range(len(ranks)))
    fig.update_yaxes(range=[len(ranks) - 0.5, -0.5], tickvals=places, ticktext=[f"rank {r}" for r in ranks])
    fig.update_yaxes(showgrid=False, ticks="", fixedrange=True)
    fig.update_xaxes(range=[first, last + 0.003 * (last - first)], showgrid=True, gridcolor=GRID)
    fig.update_xaxes(title_text="version of the weights", tickformat="d")
    fig.update_layout(barmode="overlay", showlegend=True)
    return sized(fig, TOP + BOTTOM + 24 + LANE * len(ranks))


def _bar(s: Strip, y: int, low: float, high: float) -> Bar:
    """The part of it that is seen: its number stands in the middle of that, and its end, if it is cut, outside."""
    start, end = max(s.read, low), min(s.version, high)
    return Bar(y, start, end - start, s.fill, "×" if s.dropped else str(s.stale), _hover(s))


def _hover(s: Strip) -> str:
    became = f"dropped at version {s.version}" if s.dropped else f"made version {s.version}"
    return f"rank {s.rank}, gradient {s.clock}<br>read version {s.read}, {became}<br>{_updates(s.stale)} old"


def _updates(n: int) -> str:
    return f"{n} update" if n == 1 else f"{n} updates"


def _words(strips: Sequence[Strip]) -> str:
    said = []
    for rank in sorted({s.rank for s in strips}):
        mine = [s for s in strips if s.rank == rank]
        used = [s.stale for s in mine if not s.dropped]
        dropped = len(mine) - len(used)
        text = f"Rank {rank}: {len(mine):,} gradient{'s' * (len(mine) != 1)}"
        text += f", {mean(used):.3g} updates old on average and {max(used)} at most" if used else ""
        said.append(text + (f", {dropped} dropped." if dropped else "."))
    return " ".join(said)


def _rows(strips: Sequence[Strip]) -> tuple[tuple[str, ...], ...]:
    rows = [("rank", "gradients", "updates old, mean", "at most", "dropped")]
    for rank in sorted({s.rank for s in strips}):
        mine = [s for s in strips if s.rank == rank]
        used = [s.stale for s in mine if not s.dropped]
        old = (f"{mean(used):.2f}", str(max(used))) if used else ("-", "-")
        rows.append((str(rank), f"{len(mine):,}", *old, str(len(mine) - len(used))))
    return tuple(rows)
