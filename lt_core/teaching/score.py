"""How near a guess came: 3 points within 2 %, 2 within a quarter, 1 within a factor of two.

Small counts are exact (3) or off by one (1); orders of magnitude within half a decade (3) or a whole one (1); a choice
is right (3) or not. Points are for fun; whether a guess counts as right for calibration is `RIGHT` points or more.
"""

from __future__ import annotations

import math

MOST, RIGHT = 3, 2
WITHIN = ((1.02, 3), (1.25, 2), (2.0, 1))
DECADES = ((0.5, 3), (1.0, 1))
COUNT = 10  # up to here a whole number is counted, not estimated


def of_number(guess: float, right: float, order_of_magnitude: bool = False) -> int:
    """Points for a number. right: an int of at most 10, or 0, is a count."""
    if guess == right:
        return MOST
    if order_of_magnitude:
        return _first(abs(math.log10(ratio(guess, right))), DECADES) if ratio(guess, right) < math.inf else 0
    if is_count(right):
        return 1 if abs(guess - right) <= 1 else 0
    return _first(ratio(guess, right), WITHIN)


def of_choice(guess: str, right: str) -> int:
    """Points for one of several answers."""
    return MOST if guess == right else 0


def is_count(right: float) -> bool:
    """Whether the answer is scored as exact or off by one: 0, or a whole number of at most 10."""
    return right == 0 or (isinstance(right, int) and abs(right) <= COUNT)


def ratio(guess: float, right: float) -> float:
    """The larger over the smaller; infinite where one of the two is zero or their signs differ."""
    if guess * right <= 0:
        return math.inf
    return max(guess / right, right / guess)


def _first(value: float, steps: tuple[tuple[float, int], ...]) -> int:
    return next((points for most, points in steps if value <= most * (1 + 1e-12)), 0)
