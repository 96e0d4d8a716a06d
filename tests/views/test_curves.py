"""Curves over the same bytes: named at their ends, marked where one looks, and their crossings are computed."""

import math
from itertools import pairwise

import pytest

from lt_core.base import UserError
from lt_core.views import curves
from lt_core.views.curves import crossings

SIZES = [10**k for k in range(3, 9)]
RING = {n: 14e-4 + 1.75 * n / 125e6 for n in SIZES}
DOUBLING = {n: 3e-4 + 3 * n / 125e6 for n in SIZES}


def chart(lines=None, **how):
    return curves(lines or {"ring": RING, "doubling": DOUBLING}, title="They cross", under="8 ranks, office", **how)


def test_lines_differ_by_colour_and_dash_and_stand_on_logarithmic_axes():
    figure = chart().figure
    assert [(t.name, t.line.dash, t.line.width) for t in figure.data] == [("ring", "solid", 3), ("doubling", "dash", 3)]
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert list(figure.layout.xaxis.ticktext) == ["1 kB", "10 kB", "100 kB", "1 MB", "10 MB", "100 MB"]
    assert figure.layout.showlegend is False


def test_each_line_is_named_at_its_end():
    ring, doubling = chart().figure.layout.annotations
    assert (ring.text, doubling.text) == ("ring", "doubling")
    assert ring.x == 8 and ring.y == pytest.approx(math.log10(RING[10**8]))


def test_where_one_looks_each_line_has_a_mark_and_its_value_stands_in_the_words():
    figure = chart(at=10_000)
    mark = figure.figure.data[-1]
    assert mark.x == (10_000, 10_000) and mark.y == (RING[10_000], DOUBLING[10_000])
    assert "ring: 1.41 ms at 1 kB, 1.4 s at 100 MB, 1.54 ms at 10 kB." in figure.words


def test_each_line_can_have_a_mark_of_its_own_and_one_at_the_end_leaves_room_for_the_name():
    figure = chart(at={"ring": 10**8, "doubling": 1000})
    mark = figure.figure.data[-1]
    assert (mark.x, mark.y) == ((10**8, 1000), (RING[10**8], DOUBLING[1000]))
    ring, doubling = figure.figure.layout.annotations
    assert ring.xshift > doubling.xshift


def test_what_was_measured_is_dots_of_the_line_s_colour_and_stands_apart_in_the_words():
    figure = chart(dots={"ring": {1000: 5e-3}})
    line, dot = figure.figure.data[0], figure.figure.data[-1]
    assert (dot.mode, dot.x, dot.y, dot.marker.color) == ("markers", (1000,), (5e-3,), line.line.color)
    assert figure.times == "Measured: ring 5 ms at 1 kB." and "5 ms" not in figure.words


def test_the_axes_say_what_the_bytes_are_of_and_have_more_than_a_tick_or_two():
    flat = {n: 0.1 + n / 10**9 for n in SIZES}
    layout = chart({"flat": flat}, x="bytes of a bucket").figure.layout
    assert layout.xaxis.title.text == "bytes of a bucket"
    assert list(layout.yaxis.ticktext) == ["100 ms", "200 ms", "500 ms", "1 s", "2 s", "5 s"]
    assert "200 us" not in chart().figure.layout.yaxis.ticktext


def test_a_crossing_is_near_the_law_s_and_said():
    (found,) = crossings(RING, DOUBLING)
    assert 0.7 < found / 110_000 < 1.4  # 11 alpha / (1.25 beta), from six points of each line
    assert f"ring and doubling cross at {found / 1000:.3g} kB." in chart().words
    assert crossings(RING, RING) == []


def test_the_numbers_stand_in_a_table_too():
    assert chart().rows[:2] == (("bytes", "ring", "doubling"), ("1,000", "1.41 ms", "324 us"))


@pytest.mark.parametrize(
    ("lines", "how", "words"),
    [
        ({str(k): RING for k in range(5)}, {}, "curves that can be told apart; got 5 lines; expected 1 to 4"),
        ({"ring": RING, "short": {1000: 1.0}}, {}, "short is not over the same bytes"),
        ({"none": dict.fromkeys(SIZES, 0.0)}, {}, "none has no place on logarithmic axes; got 0.0"),
        ({"ring": RING}, {"dots": {"tree": {1000: 1.0}}}, "tree has no line in this picture; expected one of ring"),
        ({"ring": RING}, {"at": {"tree": 1000}}, "tree has no line in this picture; expected one of ring"),
        ({"ring": RING}, {"at": 7}, "at is none of the bytes; got 7; expected one of 1,000, 10,000"),
    ],
)
def test_what_cannot_be_drawn_is_named(lines, how, words):
    with pytest.raises(UserError, match=words):
        chart(lines, **how)


def test_no_name_covers_another():
    same = {n: 1e-3 * n for n in (1000, 10**6)}
    found = curves({"one": same, "other": same, "third": {n: 2 * v for n, v in same.items()}}, title="t", under="u")
    heights = sorted(a.y for a in found.figure.layout.annotations)
    assert all(b - a >= 0.2 for a, b in pairwise(heights)) and heights[0] == pytest.approx(3)


def test_both_axes_say_what_they_show():
    titles = [
        (f.layout.xaxis.title.text, f.layout.yaxis.title.text) for f in (chart().figure, chart(y="a step").figure)
    ]
    assert titles == [("bytes of the tensor", "time"), ("bytes of the tensor", "a step")]
