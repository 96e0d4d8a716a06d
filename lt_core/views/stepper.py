"""Step through a collective that real ranks ran: a slider over its rounds, each rank's chunks with their real values.

all_reduce(comm, x, ring.schedule(comm.size), trace, watch=chunk_table)      on every rank
stepper(Trace.merge(traces), add="reduce-scatter", copy="all-gather")        after  --o------  round 0   [back] [step]

It knows rounds and messages, so it steps through any schedule of rounds.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from lt_core.base.action import Op
from lt_core.base.trace import Trace
from lt_core.views.chunk_words import Names, after, part, phase_words, rows, stretches, whole_words
from lt_core.views.chunks import Look, Table, draw
from lt_core.views.explore import live
from lt_core.views.panel import Panel
from lt_core.views.phases import Phases, phases
from lt_core.views.show import Figure
from lt_core.views.style import SUBTITLE, TITLE, titled

LARGE, DENSE = Look(52, 14, 12, 0.37, news=True), Look(32, 10, 8)
ALONE, BESIDE = Look(28, 12, 7), Look(28, 12)  # a table in a still
GAP = 0.7  # of a column, between two tables
# Ranks or chunks of a table that is drawn large; half as many where it stands beside others; tables in a still.
MOST = 8


def stepper(trace: Trace, *, add: str = "add", copy: str = "copy") -> None:
    """Display a recorded collective with a slider over its rounds; for readers without a kernel, its telling phases.

    trace: merged from all ranks', each recorded with `watch=chunk_table`.  add, copy: what its rounds are called whose
    receivers add, and whose receivers keep a copy. In plain Python the words are printed. Errors: no chunk tables.
    """
    several, names = phases(trace), {Op.ADD: add, Op.COPY: copy}
    how = f"{trace.clock} over {trace.backend}" if trace.backend else trace.clock
    live(_twin(several, names, how), lambda: _panel(several, names, how))


def steps(trace: Trace, *, add: str = "add", copy: str = "copy") -> Figure:
    """The stepper's telling phases as one picture, with its words and its numbers as a table."""
    how = f"{trace.clock} over {trace.backend}" if trace.backend else trace.clock
    return _twin(phases(trace), {Op.ADD: add, Op.COPY: copy}, how)


def _panel(several: Phases, names: Names, how: str) -> Panel:
    import ipywidgets

    @cache
    def build(after: int) -> Figure:
        return _one(several, after, names, how)

    slider = ipywidgets.SelectionSlider(
        options=[(after(phase), number) for number, phase in enumerate(several.phases)],
        description="after",
        style={"description_width": "initial"},
        layout={"width": "min(100%, 420px)"},
    )
    buttons = [_button("◀ back", slider, -1), _button("step ▶", slider, 1)]
    return Panel(build, {"after": slider}, build(0), buttons, prefix=False)


def _button(text: str, slider: Any, by: int) -> Any:
    import ipywidgets

    def step(button: object) -> None:
        slider.index = min(max(slider.index + by, 0), len(slider.options) - 1)

    button = ipywidgets.Button(description=text, layout={"width": "auto"})
    button.on_click(step)
    return button


def _one(several: Phases, number: int, names: Names, how: str) -> Figure:
    phase, done = several.phases[number], len(several.finished(number))
    fig = draw(several, [Table(number)], names, LARGE if max(several.ranks, several.chunks) <= MOST else DENSE)
    count = f"{done} of {len(several.full())} cells are finished"
    where = after(phase) + (f", {part(phase, names)}" if phase.messages else "")
    titled(fig, _short(f"{where[0].upper()}{where[1:]}: {count}"), _under(several, how))
    return Figure(fig, phase_words(several, number, names))


def _twin(several: Phases, names: Names, how: str) -> Figure:
    numbers = _telling(several)
    headings = [f"{after(p)} {part(p, names)}".strip() for p in (several.phases[k] for k in numbers)]
    small = ALONE if len(numbers) == 1 else BESIDE
    fig = draw(several, _placed(several, numbers, headings), names, small if several.chunks <= MOST else DENSE)
    titled(fig, _finding(several), _under(several, how))
    return Figure(fig, whole_words(several, names), rows=rows(several, numbers))


def _finding(several: Phases) -> str:
    """Who owns what when the first stretch is over: for a ring each its chunk, for a star one rank all."""
    runs = stretches(several)
    if not runs:
        return "Nothing has to move"
    end, whole = runs[0][-1], sum(p.round >= 0 for p in several.phases)
    done, full, gone = several.finished(end), several.full(), sum(p.round >= 0 for p in several.phases[: end + 1])
    when = f"After {gone}{f' of {whole}' if gone < whole else ''} round{'s' * (whole > 1)}"
    owned = Counter(rank for rank, _ in done)
    if done == full or len(owned) == 1:
        return f"{when} {'each rank' if done == full else f'rank {min(owned)}'} owns every finished chunk"
    if len(owned) < several.ranks or len(set(owned.values())) > 1:
        return f"{when} {len(done)} of {len(full)} cells are finished"
    each = owned[0]
    return f"{when} each rank owns {'one finished chunk' if each == 1 else f'{each} finished chunks'}"


def _placed(several: Phases, numbers: Sequence[int], headings: Iterable[str]) -> list[Table]:
    """The tables of these phases, side by side and in rows below each other."""
    beside = max(1, min(4, 16 // several.chunks))
    wide, high = several.chunks + GAP, several.ranks + 2.0
    return [
        Table(number, k % beside * wide, k // beside * high, heading)
        for k, (number, heading) in enumerate(zip(numbers, headings))
    ]


def _telling(several: Phases) -> list[int]:
    """All; where they are many the start, the first round and the end of each stretch; of wide tables only where the
    first stretch ends, for the picture of a committed notebook is to be light."""
    runs = stretches(several)
    ends = [run[-1] for run in runs]
    if not runs or several.ranks > MOST // 2:
        return ends[:1] or [0]
    return list(range(len(several.phases))) if len(several.phases) <= MOST else sorted({0, *runs[0][:1], *ends[:4]})


def _under(several: Phases, how: str) -> str:
    most = -(-several.elements // several.chunks)
    cells = f"; a cell shows the first of its {most:,} elements" if most > 1 else ""
    return _short(f"{several.name}, {how}{cells}", SUBTITLE)


def _short(text: str, width: int = TITLE) -> str:
    return textwrap.shorten(text, width, placeholder=" …")
