"""Where letters stand beside marks that lie close together: off all marks and off each other, a thin line to their own.

  C   I                    near first; further away where that is taken
   \\ |
B - oo - D                 greedy, letter after letter: each takes the place that is least in anybody's way
"""

from __future__ import annotations

from collections.abc import Sequence
from math import cos, hypot, pi, sin

Place = tuple[float, float]  # pixels, up and to the right
RADII, TURNS = (19, 30, 42), 16  # pixels from the mark's middle; directions
OFF_MARK, OFF_LETTER = 17.0, 16.0  # pixels: closer than that is in the way


def beside(marks: Sequence[Place], width: float, height: float) -> list[Place]:
    """How far each mark's letter stands from it, (to the right, up); marks: within `width` and `height` pixels."""
    taken: list[Place] = []
    found = []
    for own in marks:
        others = [mark for mark in marks if mark != own]
        best = min(_candidates(own), key=lambda place: _cost(place, own, others, taken, (width, height)))
        taken.append(best)
        found.append((best[0] - own[0], best[1] - own[1]))
    return found


def _candidates(own: Place) -> list[Place]:
    angles = [2 * pi * (k + 0.5) / TURNS for k in range(TURNS)]
    return [(own[0] + r * cos(a), own[1] + r * sin(a)) for r in RADII for a in angles]


def _cost(place: Place, own: Place, marks: Sequence[Place], letters: Sequence[Place], size: Place) -> float:
    """How much a letter there would be in the way: of marks, of letters, of the picture's edge; and how far it is."""
    middle = ((place[0] + own[0]) / 2, (place[1] + own[1]) / 2)  # of the line to the mark
    near = [OFF_MARK - _apart(at, mark) for mark in marks for at in (place, middle)]
    near += [OFF_LETTER - _apart(place, letter) for letter in letters]
    near += [8 - min(x, size[k] - x) for k, x in enumerate(place)]
    return sum(max(0.0, x) ** 2 for x in near) + 0.05 * _apart(place, own)


def _apart(a: Place, b: Place) -> float:
    return hypot(a[0] - b[0], a[1] - b[1])
