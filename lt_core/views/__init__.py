"""Pictures of what was recorded, each with its words; this floor knows `base` alone, and no technique.

| file | what it draws | from |
|---|---|---|
| style | the template, the palette, the fills, the ticks | - |
| show | one call: the picture, and below it its words; one HTML file | Figure |
| actions, lanes | how an action looks; bars in lanes | - |
| gantt | when each rank did what | Trace |
| grid | what each rank does in which tick | Schedule |
| wires | who sends how much to whom | Trace, Traffic |
| witnesses | law, simulation and measurement on one axis | Three a row |
| courses | a number against time, a line a way of doing it | values by time |
| curves | seconds against bytes, a line a way of doing it | seconds by bytes |
| crossover | many laws over bytes, the fastest among them, dots of runs | seconds by bytes, stretches |
| winner_map | who wins where, a letter a winner | the winner by case and bytes |
| compression, letters | error against bytes, a letter a method, none over another | Point a method |
| guess | a guess as a dashed line across any of them | Figure |
| explore | a slider a parameter: controls, panel, picture | a function that gives a Figure |
| staleness | who used which version of the weights: a bar a gradient | Trace with marks of staleness |
| stepper | a collective round by round: phases, chunk_words, chunks | Trace with chunk tables |
"""

from lt_core.views.compression import Point, compression
from lt_core.views.courses import courses
from lt_core.views.crossover import crossover
from lt_core.views.curves import curves
from lt_core.views.explore import explore
from lt_core.views.gantt import gantt
from lt_core.views.grid import grid
from lt_core.views.guess import with_guess
from lt_core.views.show import Figure, show, to_html
from lt_core.views.staleness import version_strip
from lt_core.views.stepper import stepper, steps
from lt_core.views.winner_map import winner_map
from lt_core.views.wires import wires
from lt_core.views.witnesses import Three, witnesses

__all__ = [
    "Figure",
    "Point",
    "Three",
    "compression",
    "courses",
    "crossover",
    "curves",
    "explore",
    "gantt",
    "grid",
    "show",
    "stepper",
    "steps",
    "to_html",
    "version_strip",
    "winner_map",
    "wires",
    "with_guess",
    "witnesses",
]
