"""Error against bytes: a letter a method, filled where it remembers, a frontier of those that nobody beats in both."""

from itertools import combinations
from math import dist, log10

import pytest

from lt_core.base.errors import UserError
from lt_core.views import Point, compression
from lt_core.views.compression import frontier
from lt_core.views.letters import beside

POINTS = {
    "half": Point(840_000, 1e-4),
    "one bit": Point(60_000, 0.6, feedback=True),
    "top-k": Point(100_000, 0.8, feedback=True),
    "sign <1": Point(60_000, 0.7),
}


def drawn(points=None, **how):
    return compression(points or POINTS, **how, title="Who errs least", under="one gradient, 4 ranks")


def test_the_frontier_is_whom_nobody_beats_in_both():
    assert frontier(POINTS) == ["one bit", "half"]
    assert frontier({"a": Point(1, 2.0), "b": Point(1, 2.0)}) == ["a"]


def test_each_method_has_a_letter_and_a_mark_which_says_whether_it_remembers():
    figure = drawn().figure
    line, *marks = figure.data
    letters = [note for note in figure.layout.annotations if note.showarrow]
    assert [(note.text, t.marker.symbol) for note, t in zip(letters, marks, strict=True)] == [
        ("A", "circle-open"), ("B", "circle"), ("C", "circle"), ("D", "circle-open"),
    ]  # fmt: skip
    assert [t.name for t in marks][3] == "D sign &lt;1" and list(line.x) == [60_000, 840_000]
    assert [round(10**note.x) for note in letters] == [840_000, 60_000, 100_000, 60_000]


def test_letters_stand_near_their_own_mark_and_off_all_others():
    crowd = [(100.0, 100.0), (103.0, 101.0), (98.0, 96.0), (104.0, 95.0), (100.0, 118.0), (5.0, 5.0), (100.0, 100.0)]
    moved = beside(crowd, 480, 340)
    letters = [(x + right, y + up) for (x, y), (right, up) in zip(crowd, moved, strict=True)]
    assert min(dist(a, b) for a, b in combinations(letters, 2)) > 12
    assert min(dist(a, b) for a in letters for b in crowd) > 12
    assert all(dist((0, 0), by) < 45 for by in moved) and all(0 < c < 480 for at in letters for c in at)
    assert dist((0, 0), *beside([(50.0, 50.0)], 480, 340)) < 20


def test_axes_are_logarithmic_and_the_exact_mean_stands_upright():
    figure = drawn(dense_bytes=2_500_000).figure
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert figure.layout.shapes[0].x0 == 2_500_000 and "10 MB" in figure.layout.xaxis.ticktext
    assert list(figure.layout.yaxis.ticktext) == ["0.0001", "0.001", "0.01", "0.1", "1"]


def test_who_errs_far_less_stands_on_the_edge_with_its_number():
    figure = drawn(least=0.05)
    axis = figure.figure.layout.yaxis
    line, half, *others = figure.figure.data
    assert axis.range[0] == pytest.approx(log10(0.05), abs=0.1) and axis.range[1] > 0
    assert [text for text, v in zip(axis.ticktext, axis.tickvals) if axis.range[0] < log10(v) < axis.range[1]] == [
        "0.05", "0.1", "0.2", "0.5", "1"
    ]  # fmt: skip
    assert (half.marker.symbol, half.y[0], line.y[-1]) == ("triangle-down-open", 0.05, 0.05)
    assert "half: 840 kB, error 0.0001" in half.hovertext
    assert [(t.marker.symbol, t.y[0]) for t in others][:2] == [("circle", 0.6), ("circle", 0.8)]
    first, *_ = notes = figure.figure.layout.annotations
    assert [a.text for a in notes] == ["A (0.0001)", "B", "C", "D"] and (first.ax, first.xanchor) == (14, "left")
    assert figure.words.endswith(" On the lower edge, for it errs less than 0.05: half.")
    assert "half 0.0001" in figure.times and "lower edge" not in drawn().words
    both = drawn(POINTS | {"exact": Point(3_000_000, 1e-7)}, least=0.05).words
    assert both.endswith(" On the lower edge, for they err less than 0.05: half; exact.")


def test_an_error_of_one_has_its_tick_though_all_err_less():
    axis = drawn({"a": Point(7, 0.3), "b": Point(9, 0.1)}).figure.layout.yaxis
    assert axis.range[1] > log10(1) and "1" in axis.ticktext


def test_the_words_come_from_the_points():
    figure = drawn(dense_bytes=2_500_000)
    assert "from 60,000 (one bit) to 840,000 (half) along the frontier of 2." in figure.words
    assert "More bytes and more error than another: top-k; sign <1. The exact mean sends 2,500,000." in figure.words
    assert figure.times == "Errors: half 0.0001; one bit 0.6; top-k 0.8; sign <1 0.7."
    assert drawn({"only": Point(7, 1.0)}).words.endswith("1 methods, bytes a rank sends from 7 (only) alone.")
    assert drawn().rows[2] == ("B one bit", "60,000", "0.6", "yes", "yes")


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ({str(k): Point(1, 1.0) for k in range(27)}, "methods that have a letter each; got 27 of them"),
        ({"exact": Point(10, 0.0)}, "exact has no place on logarithmic axes; got 10 bytes, error 0; expected above 0"),
        ({"silent": Point(0, 1.0)}, "silent has no place on logarithmic axes; got 0 bytes"),
        ({"lost": Point(1, float("inf"))}, "lost has no place"),
    ],
)
def test_what_cannot_be_drawn_is_named(points, words):
    with pytest.raises(UserError, match=words):
        drawn(points)


@pytest.mark.parametrize("least", [-1.0, float("nan"), float("inf")])
def test_an_axis_that_ends_nowhere(least):
    with pytest.raises(UserError, match=f"the axis of errors ends; got at {least:g}; expected a number above 0, or 0"):
        drawn(least=least)
