"""What "would bet on it" was worth is counted by confidence, part by part, each prediction once."""

import pytest

from lt_core.base import UserError
from lt_core.teaching import calibration, calibration_figure, predict, reveal


@pytest.fixture
def settled(learner):
    """Part 2: two bets of which one was right, a hunch that was near, a fairly sure one still open; part 1: a bet."""
    for name, guess, sure, right in [
        ("20.a", 7, 3, 1.75), ("20.b", 1.99, 3, 1.998), ("21.a", 100, 1, 120), ("10.a", 3.0, 3, 3.0),
    ]:  # fmt: skip
        predict(name, "how many?", guess=guess, sure=sure, learner=learner)
        reveal(name, right, learner=learner)
    predict("22.a", "how many?", guess=1, sure=2, learner=learner)
    return learner


def test_by_confidence_and_part(settled):
    assert [tuple(b) for b in calibration(2, settled)] == [
        ("a hunch", 1, 1), ("fairly sure", 0, 0), ("would bet on it", 2, 1),
    ]  # fmt: skip
    assert [(b.made, b.right) for b in calibration(1, settled)] == [(0, 0), (0, 0), (1, 1)]


def test_looking_twice_counts_once(settled):
    reveal("20.a", 7, learner=settled)
    assert calibration(2, settled)[2].right == 1


def test_the_chart_says_it_in_words(settled):
    figure = calibration_figure(2, settled)
    assert figure.words == (
        "When you said “would bet on it” you were right 1 of 2 times. You have not yet said “fairly sure”. "
        "When you said “a hunch” you were right 1 of 1 time."
    )
    assert list(figure.figure.data[0].x) == [100.0, 0, 50.0]
    assert [a.text for a in figure.figure.layout.annotations] == ["1 of 1", "none yet", "1 of 2"]


def test_nothing_yet(learner):
    assert [b.made for b in calibration(3, learner)] == [0, 0, 0]
    assert "none yet" in str(calibration_figure(3, learner).figure.layout.annotations)


def test_a_part_that_is_none(learner):
    with pytest.raises(UserError, match="there is no such part; got 12; expected 0 to 9"):
        calibration(12, learner)
