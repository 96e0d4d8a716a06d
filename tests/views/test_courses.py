"""Lines against time: named at their ends, none of which covers another; words and table say where each ends."""

from itertools import pairwise

import pytest

from lt_core.base.errors import UserError
from lt_core.views import courses

LINES = {"quorum": [(0, 0.1), (10, 0.9)], "synchronous": [(0, 0.1), (10, 0.5)], "late": [(0, 0.1), (8, 0.51)]}


def chart(lines=LINES, **how):
    return courses(lines, title="The quorum is first", under="simulated", x="emulated seconds", y="accuracy", **how)


def test_lines_differ_by_colour_and_dash():
    figure = chart().figure
    assert [(t.name, t.line.dash) for t in figure.data] == [
        ("quorum", "solid"),
        ("synchronous", "dash"),
        ("late", "dot"),
    ]
    assert list(figure.data[1].y) == [0.1, 0.5] and figure.layout.xaxis.title.text == "emulated seconds"


def test_no_name_covers_another():
    heights = sorted(a.y for a in chart().figure.layout.annotations)
    assert all(b - a >= 0.05 for a, b in pairwise(heights))


def test_the_names_stand_beside_the_axes():
    layout = chart().figure.layout
    assert list(layout.xaxis.range) == [0, 10] and layout.margin.r > 8 * len("synchronous")


def test_a_line_that_ends_early_has_its_name_there():
    notes = chart({**LINES, "short": [(0, 0.1), (2, 0.9)]}).figure.layout.annotations
    assert {note.text: note.x for note in notes} == {"quorum": 10, "synchronous": 10, "late": 10, "short": 2}


def test_more_than_four_lines_have_a_legend_which_shows_their_dashes():
    figure = chart({str(k): [(0, 0.1), (10, 0.5)] for k in range(5)}).figure
    assert figure.layout.showlegend and not figure.layout.annotations
    assert figure.layout.height > chart().figure.layout.height


def test_logarithmic_axes_have_a_tick_a_decade_and_names_at_the_ends_of_their_lines():
    layout = chart({"a": [(1, 0.5), (1000, 200)]}, log_x=True, log_y=True).figure.layout
    assert layout.xaxis.type == layout.yaxis.type == "log" and list(layout.xaxis.range) == [0, 3]
    assert layout.xaxis.ticktext == ("1", "10", "100", "1,000") and layout.yaxis.ticktext[0] == "0.1"
    (name,) = layout.annotations
    assert (name.x, round(10**name.y)) == (3, 200)


def test_thousands_have_a_comma_on_axes_and_in_words():
    figure = chart({"a": [(0, 0), (1000, 270)]})
    assert figure.figure.layout.xaxis.tickformat == figure.figure.layout.yaxis.tickformat == ","
    assert figure.words.endswith(" a: from 0 to 270 at 1,000.")


def test_what_no_eye_tells_from_zero_is_about_0_but_on_a_logarithmic_axis():
    line = {"a": [(0, 1.0), (5, 3.0), (10, -4.34e-11)], "b": [(0, 0.0), (10, 4e-11)]}
    figure = chart(line)
    assert figure.words.endswith("a: from 1 to about 0 at 10. b: from 0 to 4e-11 at 10.")
    assert figure.rows[1:] == (("a", "1", "about 0"), ("b", "0", "4e-11"))
    assert "a: from 1 to 4e-05 at 10." in chart({"a": [(1, 1.0), (10, 4e-5)]}, log_y=True).words


def test_a_zero_has_no_place_on_a_logarithmic_axis():
    with pytest.raises(UserError) as caught:
        chart(log_x=True)
    assert str(caught.value) == "emulated seconds has no place on a logarithmic axis; got 0; expected numbers above 0"


def test_words_and_table():
    figure = chart()
    assert figure.words == (
        "The quorum is first. Accuracy against emulated seconds. quorum: from 0.1 to 0.9 at 10. "
        "synchronous: from 0.1 to 0.5 at 10. late: from 0.1 to 0.51 at 8."
    )
    assert figure.rows[1] == ("quorum", "0.1", "0.9")
    assert "0.9" not in chart(exact=False).words and "0.9" in chart(exact=False).times
    assert "synchronous: from 0.1 to out of the picture at 10." in chart(between=(0, 0.4)).words


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ({}, "lines that can be told apart; got 0 lines; expected 1 to 6"),
        ({"none": []}, "none has no point; expected at least one (time, value)"),
    ],
)
def test_what_it_refuses(lines, words):
    with pytest.raises(UserError) as caught:
        chart(lines)
    assert str(caught.value) == words
