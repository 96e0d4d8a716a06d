"""One call shows a figure: the picture and, below it, its words for those who do not see it.

A Figure carries both, so that `show(gantt(trace))` is enough. What is exact (counts, bytes, order) stands in `words`
and can be compared between two runs; what a clock said stands apart, in `times`.
"""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lt_core.base.errors import UserError

if TYPE_CHECKING:
    import plotly.graph_objects as go

WIDTH = 860  # pixels of the column in which a picture without a kernel is read
PLOTLY = "application/vnd.plotly.v1+json"
CONFIG = MappingProxyType({"displaylogo": False})  # plotly adds to the one it is given
PAGE = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>body{{max-width:{width}px;margin:24px auto;padding:0 16px;font:16px/1.6 sans-serif;color:#1F2933}}</style></head>
<body>
{body}
</body>
</html>
"""


@dataclass(frozen=True)
class Figure:
    """A plotly figure and what it shows in words: `words` are exact facts, `times` what a clock said.

    rows: the same as a table where it is one, the names of its columns first.
    """

    figure: go.Figure
    words: str
    times: str = ""
    rows: tuple[tuple[str, ...], ...] = ()

    def describe(self, stable: bool = False) -> str:
        """The picture in words; `stable=True` leaves out what a clock said."""
        return self.words if stable else f"{self.words} {self.times}".strip()

    @property
    def title(self) -> str:
        """The title as plain text."""
        return html.unescape(self.figure.layout.title.text or "")

    def _ipython_display_(self) -> None:
        show(self)


def show(figure: Figure | go.Figure, words: str = "") -> None:
    """Display the figure, with its words folded below; where no notebook is, print the words.

    `words` replaces those that the figure carries; a bare plotly figure has none. Errors: a figure without words.
    """
    shown = worded(figure, words)
    if in_notebook():
        present(shown)
    else:
        print(shown.describe())


def present(figure: Figure, more: Mapping[str, Any] | None = None, summary: str = "In words") -> None:
    """One display in a notebook, of the figure and what `more` holds by mimetype; below it the words, folded."""
    from IPython.display import display

    data, metadata = bundle(figure)
    display({**data, **(more or {})}, metadata=metadata, raw=True)  # type: ignore[no-untyped-call]
    display({"text/html": folded(figure, summary)}, raw=True)  # type: ignore[no-untyped-call]


def bundle(figure: Figure) -> tuple[dict[str, Any], dict[str, Any]]:
    """(data, metadata) of the one display: the live figure and its facts; alt text and width of its later PNG."""
    drawn = json.loads(figure.figure.to_json())
    data = {PLOTLY: {**drawn, "config": dict(CONFIG)}, "text/plain": figure.words}
    return data, {"image/png": {"alt": figure.words, "width": WIDTH}}


def folded(figure: Figure, summary: str = "In words", opened: bool = False) -> str:
    """The words as HTML, and the table where there is one, folded under a summary."""
    state = " open" if opened else ""
    inside = f"<p>{html.escape(figure.describe())}</p>{_table(figure.rows)}"
    return f"<details{state}><summary>{html.escape(summary)}</summary>{inside}</details>"


def _table(rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    names, *lines = [[html.escape(cell) for cell in row] for row in rows]
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    body = "".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>' for first, *rest in lines
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def to_html(figures: Figure | Sequence[Figure], path: str | Path) -> Path:
    """Write one HTML file that asks for nothing else: figures, plotly.js, words. Errors: a place that takes no file."""
    several = [figures] if isinstance(figures, Figure) else list(figures)
    parts = [_part(figure, number) for number, figure in enumerate(several)]
    title = html.escape(several[0].title if several else "")
    page = PAGE.format(title=title, width=WIDTH, body="\n".join(parts))
    try:
        Path(path).write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} was not written", error.strerror or error, attempt="another folder") from error
    return Path(path)


def _part(figure: Figure, number: int) -> str:
    named = f"figure-{number}"  # plotly's own random name would make each file differ
    drawn = figure.figure.to_html(config=dict(CONFIG), include_plotlyjs=number == 0, full_html=False, div_id=named)
    return f"{drawn}\n{folded(figure, opened=True)}"


def worded(figure: Figure | go.Figure, words: str = "") -> Figure:
    """The figure with these words in place of its own. Errors: a figure without words."""
    if isinstance(figure, Figure):
        return replace(figure, words=words, times="") if words else figure
    if not words:
        raise UserError("a figure without words", expected="what it shows, in two to six sentences", attempt="words=")
    return Figure(figure, words)


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this code, so that what is displayed is seen."""
    if "IPython" not in sys.modules:  # a kernel has imported it long before
        return False
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None
