"""Points are those of the rule: by ratio, small counts exact, orders of magnitude in decades, choices right or not."""

import math

import pytest

from lt_core.teaching import score


@pytest.mark.parametrize(
    ("guess", "right", "points"),
    [
        (1.75, 1.75, 3), (1.785, 1.75, 3), (1.79, 1.75, 2), (2.1875, 1.75, 2), (2.2, 1.75, 1), (3.5, 1.75, 1),
        (3.51, 1.75, 0), (0.875, 1.75, 1), (0.87, 1.75, 0), (-1.75, 1.75, 0), (0, 1.75, 0), (-2.0, -2.02, 3),
        (110_000, 110_000, 3), (90_000, 110_000, 2), (11, 12, 2),
    ],
)  # fmt: skip
def test_a_number_is_scored_by_its_ratio(guess, right, points):
    assert score.of_number(guess, right) == points


@pytest.mark.parametrize(
    ("guess", "right", "points"),
    [
        (3, 3, 3), (4, 3, 1), (2, 3, 1), (5, 3, 0), (9, 10, 1), (1, 0, 1), (0.01, 0.0, 1), (2, 0, 0), (0, 0, 3),
    ],
)  # fmt: skip
def test_a_small_count_is_exact_or_off_by_one(guess, right, points):
    assert score.of_number(guess, right) == points


@pytest.mark.parametrize(
    ("guess", "right", "points"),
    [(1e-3, 3e-3, 3), (1e-3, 1e-2, 1), (1e-3, 2e-2, 0), (0, 1e-3, 0), (7, 2, 1)],
)
def test_what_a_clock_said_is_scored_in_decades(guess, right, points):
    assert score.of_number(guess, right, order_of_magnitude=True) == points


def test_a_choice_is_right_or_not():
    assert score.of_choice("ring", "ring") == 3 and score.of_choice("tree", "ring") == 0


def test_the_ratio_is_the_same_from_both_sides():
    assert score.ratio(2, 3) == score.ratio(3, 2) == 1.5
    assert score.ratio(0, 3) == score.ratio(-1, 3) == math.inf
