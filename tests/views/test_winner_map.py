"""A map of winners: each has a letter and a colour of its own, and the words say who wins at both ends."""

from itertools import combinations

import numpy as np
import pytest

from lt_core.base.errors import UserError
from lt_core.collectives import ALGORITHMS
from lt_core.views import winner_map
from lt_core.views.crossover import COLOURS
from lt_core.views.winner_map import TINTS
from tests.views.test_style import SEEN_BY, distance, lab

ROWS = {
    "7 ranks": {1000: "doubling", 3162: "ring", 10_000: "ring"},
    "8 ranks": {1000: "doubling", 3162: "doubling", 10_000: "halving"},
}


def chart(rows=ROWS, order=()):
    return winner_map(rows, order, title="Seven is not eight", under="office, by law")


def test_a_cell_has_its_winner_s_letter_and_colour_and_the_legend_says_whose():
    heat, *legend = chart().figure.data
    assert [list(row) for row in heat.text] == [["A", "B", "B"], ["A", "A", "C"]]
    assert [list(row) for row in heat.z] == [[0, 1, 1], [0, 0, 2]]
    assert list(heat.y) == ["7 ranks", "8 ranks"]
    assert [(t.name, t.marker.color) for t in legend] == [
        ("A doubling", TINTS[0]), ("B ring", TINTS[1]), ("C halving", TINTS[2])
    ]  # fmt: skip


def test_in_an_order_each_keeps_its_letter_and_colour_from_map_to_map():
    order = ["tree", "halving", "doubling", "ring"]
    for rows in (ROWS, {"8 ranks": ROWS["8 ranks"]}):
        heat, *legend = chart(rows, order).figure.data
        assert ([*heat.text[-1]], [*heat.z[-1]]) == (["C", "C", "B"], [2, 2, 1])
        assert {(t.name, t.marker.color) for t in legend} <= {
            ("B halving", TINTS[1]), ("C doubling", TINTS[2]), ("D ring", TINTS[3])
        }  # fmt: skip
        assert len(legend) == len({name for row in rows.values() for name in row.values()})
    assert [list(row) for row in chart(ROWS, ["ring"]).figure.data[0].text] == [["B", "A", "A"], ["B", "B", "C"]]


@pytest.mark.parametrize("seen_by", SEEN_BY)
def test_who_wins_in_lab_20_has_the_hue_of_its_line_and_can_be_told_apart(seen_by):
    names = list(ALGORITHMS)
    four = [names.index(name) for name in ("recursive doubling", "halving-doubling", "ring", "torus")]
    near = min((distance(TINTS[a], TINTS[b], seen_by), names[a], names[b]) for a, b in combinations(four, 2))
    assert near[0] >= 18, near
    for k in four:
        a, b = (lab(colours[k], "everybody")[1:] for colours in (TINTS, COLOURS))
        assert a @ b > 0.85 * np.linalg.norm(a) * np.linalg.norm(b), names[k]


def test_a_winner_s_number_falls_into_its_own_colour():
    heat = chart().figure.data[0]
    for k, tint in enumerate(TINTS):
        place = (k - heat.zmin) / (heat.zmax - heat.zmin)
        below = [colour for end, colour in heat.colorscale if end <= place][-1]
        above = next(colour for end, colour in heat.colorscale if end >= place)
        assert below == above == tint


def test_only_decades_are_named():
    axis = chart().figure.layout.xaxis
    assert (list(axis.tickvals), list(axis.ticktext)) == ([0, 2], ["1 kB", "10 kB"])


def test_words_say_who_wins_at_both_ends_and_the_table_everything():
    figure = chart()
    assert figure.words == (
        "Seven is not eight. At 1 kB: doubling, everywhere. At 10 kB: ring (7 ranks), halving (8 ranks)."
    )
    assert figure.rows == (
        ("", "who wins, from how many bytes on"),
        ("7 ranks", "doubling, from 3.16 kB on ring"),
        ("8 ranks", "doubling, from 10 kB on halving"),
    )


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({}, "a map of nothing; got no row; expected at least one"),
        ({"2 ranks": {}}, "2 ranks is not over the same bytes; got []; expected at least one size"),
        ({**ROWS, "9 ranks": {1: "ring"}}, "9 ranks is not over the same bytes; got [1]; expected [1000, 3162, 10000]"),
        (
            {"2 ranks": {n: str(n) for n in range(1, 10)}},
            "winners that can be told apart; got 9 of them; expected at most 8",
        ),
    ],
)
def test_what_it_refuses(rows, words):
    with pytest.raises(UserError) as caught:
        chart(rows)
    assert str(caught.value) == words
