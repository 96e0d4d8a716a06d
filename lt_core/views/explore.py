"""Move a slider until something surprising happens: a figure made by a function, and a control for each parameter.

def build(ranks, size): ...          ranks  ----o------  8
    return Figure(fig, words)        size   --o--------  10,000
                                     [figure]
explore(build, found={"size": 110_000}, ranks=range(2, 17), size=[1_000, 10_000, 110_000])
                                     size: 10,000. The ring needs 1.1 ms.     <- each change in one line, spoken too
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from lt_core.views.controls import Range, control, options, place, stands
from lt_core.views.panel import Build, Panel
from lt_core.views.show import Figure, in_notebook, present, worded


def explore(build: Build, found: Mapping[str, Any] | None = None, **ranges: Range) -> None:
    """Display `build(**values)`, a Figure, with a control for each of `ranges`, and below it the words.

    ranges: `range(2, 9)` or a list of numbers (slider), other lists or `{name: value}` (drop-down), `bool` (check box).
    found: what is to be found: there stands the picture for readers without a kernel, and its words say so; controls
    begin at the first values. In plain Python the words are printed. Errors: those of `build` at `found`; an empty
    range, a place in none.
    """
    several = {name: options(name, values) for name, values in ranges.items()}
    where = place(several, found or {})
    twin = worded(build(**where))
    if found:
        at = "; ".join(stands(name, several[name], value) for name, value in where.items())
        twin = replace(twin, words=f"At {at}. {twin.words}")

    def panel() -> Panel:
        return Panel(build, {name: control(name, values) for name, values in several.items()}, twin)

    live(twin, panel, "In words: the place to find" if found else "In words")


def live(twin: Figure, panel: Callable[[], Panel], summary: str = "In words") -> None:
    """Display a panel where a kernel and ipywidgets are, with its twin for readers without: one bundle."""
    if not in_notebook():
        print(twin.describe())
    elif find_spec("ipywidgets") and find_spec("anywidget"):
        present(twin, panel().view(), summary)
    else:
        print("no sliders: they need ipywidgets and anywidget (pip install ipywidgets anywidget)")
        present(twin, summary=summary)
