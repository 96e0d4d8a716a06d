"""How much a learner's "would bet on it" is worth: of the predictions made with each confidence, how many were right.

would bet on it  ████████████  3 of 4        Right: within a quarter of the answer, or exact where it is a count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lt_core.base.errors import UserError
from lt_core.teaching.learner import Learner
from lt_core.teaching.predict import SURE
from lt_core.teaching.score import RIGHT
from lt_core.views.show import Figure
from lt_core.views.style import BLUE, BOTTOM, GRID, ROW, TOP, sized, titled

if TYPE_CHECKING:
    import plotly.graph_objects as go


class Bets(NamedTuple):
    """Of `made` predictions of one confidence, `right` were right."""

    sure: str
    made: int
    right: int

    @property
    def words(self) -> str:
        """As a sentence."""
        if not self.made:
            return f"You have not yet said “{self.sure}”."
        return f"When you said “{self.sure}” you were right {self.right} of {self.made} time{'s' * (self.made > 1)}."


def calibration(part: int, learner: Learner | None = None) -> tuple[Bets, ...]:
    """What the predictions of a part came to, by confidence, from a hunch to a bet; part 2 is labs 20 to 29.

    Each prediction counts once, as it stood when its answer was first shown. Errors: a part that is not 0 to 9.
    """
    if part not in range(10):
        raise UserError("there is no such part", part, "0 to 9")
    first: dict[str, tuple[int, int]] = {}
    for record in (learner or Learner()).records("reveal"):
        name = str(record.get("name"))
        if name.startswith(str(part)):
            first.setdefault(name, (int(str(record.get("sure", 1))), int(str(record.get("points", 0)))))
    return tuple(
        Bets(word, sum(s == sure for s, _ in first.values()), sum(s == sure and p >= RIGHT for s, p in first.values()))
        for sure, word in enumerate(SURE, 1)
    )


def calibration_figure(part: int, learner: Learner | None = None) -> Figure:
    """The same as a small chart, to be shown at the end of a part."""
    bets = calibration(part, learner)
    fig = sized(_bars(bets), TOP + BOTTOM + ROW * len(bets))
    return Figure(titled(fig, f"Part {part}: how often you were right", "nobody but you sees this"), _words(bets))


def _words(bets: tuple[Bets, ...]) -> str:
    return " ".join(b.words for b in reversed(bets))


def _bars(bets: tuple[Bets, ...]) -> go.Figure:
    import plotly.graph_objects as go

    names = [b.sure for b in bets]
    share = [100 * b.right / b.made if b.made else 0 for b in bets]
    fig = go.Figure()
    fig.add_bar(
        x=share, y=names, orientation="h", marker_color=BLUE, hovertext=[b.words for b in bets], hoverinfo="text"
    )
    for b, x in zip(bets, share):
        text = f"{b.right} of {b.made}" if b.made else "none yet"
        fig.add_annotation(x=x, y=b.sure, text=text, xanchor="left", xshift=8, showarrow=False)
    fig.update_xaxes(range=[0, 122], tickvals=[0, 25, 50, 75, 100], ticksuffix=" %", gridcolor=GRID)
    return fig.update_yaxes(type="category", categoryarray=names, showgrid=False, ticks="", fixedrange=True)
