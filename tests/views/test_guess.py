"""A guess is a dashed line at its number, named, on the axis whether or not that had room for it."""

from math import log10

import plotly.graph_objects as go
import pytest

from lt_core.base import UserError
from lt_core.views import Figure, Three, style, with_guess, witnesses


@pytest.fixture
def bars():
    rows = {"naive": Three(24_576, 24_576, 24_576), "ring": Three(12_288, 12_288, 12_288)}
    return witnesses(rows, title="Bytes each rank sends", under="4 ranks")


@pytest.fixture
def curves():
    fig = style.sized(go.Figure(go.Scatter(x=[1e3, 1e5], y=[1e-3, 1e-1])), style.CURVES)
    return Figure(fig.update_xaxes(**style.bytes_ticks(3, 5)).update_yaxes(**style.seconds_ticks(-3, -1)), "It rises.")


def lines(figure):
    return [(s.x0, s.x1, s.y0, s.y1, s.line.dash) for s in figure.figure.layout.shapes]


def test_no_guess_leaves_the_figure(bars):
    assert with_guess(bars, None) is bars


def test_along_lying_bars_the_line_stands(bars):
    guessed = with_guess(bars, 20_000)
    assert lines(guessed) == [(20_000, 20_000, 0, 1, None), (20_000, 20_000, 0, 1, "dash")]  # white under brown
    assert guessed.figure.layout.annotations[-1].text == "your guess 20,000"
    assert guessed.words == f"{bars.words} Your guess 20,000: a dashed line."
    assert guessed.figure.layout.height == bars.figure.layout.height + 20
    assert not bars.figure.layout.shapes  # the figure given stays as it was


@pytest.mark.parametrize(
    ("value", "wanted"), [(100, (0, 29_982.72)), (57_344, (0, 61_931.52)), (-10_000, (-10_800, 29_982.72))]
)
def test_a_guess_beyond_the_axis_makes_room_for_itself(bars, value, wanted):
    assert with_guess(bars, value).figure.layout.xaxis.range == pytest.approx(wanted)


def test_across_curves_it_lies_unless_told_otherwise(curves):
    assert lines(with_guess(curves, 0.02))[1] == (0, 1, 0.02, 0.02, "dash")
    standing = with_guess(curves, 5_000, "crossing", axis="x")
    assert lines(standing)[1] == (5_000, 5_000, 0, 1, "dash")
    name = standing.figure.layout.annotations[0]
    assert name.text == "crossing 5,000" and name.x == pytest.approx(log10(5_000))  # plotly's place on such an axis


def test_a_logarithmic_axis_with_a_range_makes_room_both_ways(curves):
    curves.figure.update_xaxes(range=[3, 5])
    low, high = (with_guess(curves, v, axis="x").figure.layout.xaxis.range for v in (10, 1e7))
    assert low[0] == pytest.approx(log10(10 / 1.08)) and low[1] == 5
    assert high[0] == 3 and high[1] == pytest.approx(log10(1.08e7))


def test_an_axis_that_runs_down_keeps_its_direction(curves):
    curves.figure.update_yaxes(type="linear", range=[10, 0])
    assert with_guess(curves, 20).figure.layout.yaxis.range == (pytest.approx(21.6), 0)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_a_guess_that_is_on_no_axis_is_refused(curves, value):
    with pytest.raises(UserError, match=r"your guess is on no axis; got .*; expected a number above 0"):
        with_guess(curves, value)
