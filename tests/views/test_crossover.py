"""Many laws in one picture: who is the fastest stands above its stretch, runs are dots, and all of it is in words."""

import pytest

from lt_core.base import UserError
from lt_core.views import crossover
from lt_core.views.crossover import between

SIZES = [10**k for k in range(3, 9)]
RING = {n: 14e-4 + 1.75 * n / 125e6 for n in SIZES}
DOUBLING = {n: 3e-4 + 3 * n / 125e6 for n in SIZES}
FASTEST = [(0, "doubling"), (110_000, "ring")]


def chart(lines=None, fastest=FASTEST, dots=None):
    lines = lines or {"ring": RING, "doubling": DOUBLING}
    return crossover(lines, fastest, dots, title="They cross at 110 kB", under="8 ranks, office, by law")


def test_each_law_has_its_colour_dash_and_place_in_the_legend():
    figure = chart().figure
    *shown, band = [t for t in figure.data if t.showlegend is not False]
    assert [(t.name, t.line.dash) for t in shown] == [("ring", "solid"), ("doubling", "dash")]
    assert len({t.line.color for t in shown}) == 2
    assert band.name == "the fastest"
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert [axis.title.text for axis in (figure.layout.xaxis, figure.layout.yaxis)] == ["bytes of the tensor", "time"]


def test_no_two_of_eight_laws_look_alike_without_colour():
    lines = {str(k): {n: v * (k + 1) for n, v in RING.items()} for k in range(8)}
    *shown, _ = [t for t in chart(lines, [(0, "0")]).figure.data if t.showlegend is not False]
    assert len({t.line.dash for t in shown}) == 8


def test_the_fastest_is_a_band_with_its_name_above():
    figure = chart().figure
    first, second = (t for t in figure.data if t.opacity)
    assert list(first.x) == [1000, 10_000, 100_000, 110_000] and list(second.x) == [110_000, 10**6, 10**7, 10**8]
    assert first.y[0] == DOUBLING[1000] and second.y[-1] == RING[10**8]
    assert [a.text for a in figure.layout.annotations] == ["doubling", "110 kB: ring"]
    assert [(shape.x0, shape.layer) for shape in figure.layout.shapes] == [(110_000, "below")]  # no dot is crossed out


def test_a_law_is_a_straight_line_between_its_points():
    assert between(RING, 110_000) == pytest.approx(14e-4 + 1.75 * 110_000 / 125e6)
    assert (between(RING, 10), between(RING, 10**9), between(RING, 1000)) == (RING[1000], RING[10**8], RING[1000])


def test_runs_are_dots_of_the_law_s_colour_and_shape():
    dots = chart(dots={"doubling": {1000: 5e-4, 10**6: 0.03}}).figure
    (marks,) = (t for t in dots.data if t.mode == "markers")
    (law,) = (t for t in dots.data if t.name == "doubling")
    assert (list(marks.x), list(marks.y)) == ([1000, 10**6], [5e-4, 0.03])
    assert (marks.marker.color, marks.marker.symbol) == (law.line.color, law.marker.symbol)


def test_dots_of_one_size_stand_side_by_side_and_say_their_true_bytes():
    marks = [t for t in chart(dots={"ring": {1000: 2e-3}, "doubling": {1000: 2e-3}}).figure.data if t.mode == "markers"]
    left, right = (t.x[0] for t in marks)
    assert left < 1000 < right and left * right == pytest.approx(1000**2)
    assert [t.text[0] for t in marks] == [f"{name}, measured: 1 kB in 2 ms" for name in ("ring", "doubling")]


def test_the_words_say_who_is_the_fastest_and_what_a_clock_said_stands_apart():
    figure = chart(dots={"ring": {1000: 2e-3}})
    assert figure.describe(stable=True) == (
        "They cross at 110 kB. Fastest: doubling, from 110 kB on ring. ring: 1.41 ms at 1 kB, 1.4 s at 100 MB. "
        "doubling: 324 us at 1 kB, 2.4 s at 100 MB."
    )
    assert figure.describe().endswith(" Measured: ring 2 ms at 1 kB.")
    assert figure.rows[:2] == (("bytes", "ring", "doubling"), ("1,000", "1.41 ms", "324 us"))
    other = chart({"ring": DOUBLING, "doubling": RING}, [(0, "ring"), (110_000, "doubling")])
    assert "Fastest: ring, from 110 kB on doubling." in other.words


def test_stretches_beyond_the_picture_are_said_and_not_drawn():
    figure = chart(fastest=[(0, "doubling"), (110_000, "ring"), (10**9, "doubling")])
    assert len(figure.figure.layout.annotations) == 2
    assert "from 1 GB on doubling" in figure.words


@pytest.mark.parametrize(
    ("lines", "fastest", "dots", "words"),
    [
        ({str(k): RING for k in range(9)}, [], {}, "laws that can be told apart; got 9 lines; expected 1 to 8"),
        ({}, [], {}, "laws that can be told apart; got 0 lines"),
        ({"ring": RING, "short": {1000: 1.0}}, [], {}, "short is not over the same bytes"),
        ({"ring": RING}, [(0, "tree")], {}, "tree has no law in this picture; expected one of ring"),
        ({"ring": RING}, [], {"tree": {1000: 1.0}}, "tree has no law in this picture; expected one of ring"),
    ],
)
def test_what_has_no_picture_is_refused(lines, fastest, dots, words):
    with pytest.raises(UserError, match=words):
        crossover(lines, fastest, dots, title="t", under="u")
