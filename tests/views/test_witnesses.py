"""Three witnesses look alike everywhere, agree to the digit or say that they differ, and never show a bare value."""

import pytest

from lt_core.base import UserError
from lt_core.views import Three, witnesses

UNDER = "4 ranks · measured on 2 cores, gloo"
ROWS = {"naive, rank 0": Three(24_576, 24_576, 24_576), "ring": Three(12_288, 12_288, 12_288)}


def chart(rows=ROWS, **how):
    return witnesses(rows, title="Bytes each rank sends", under=UNDER, **how)


def labels(figure):
    return {note.y: note.text for note in figure.figure.layout.annotations}


def test_the_marks_are_the_house_s():
    law, simulated, measured = chart().figure.data
    assert [t.name for t in (law, simulated, measured)] == ["law", "simulated", "measured"]
    assert (law.marker.symbol, law.marker.size, law.marker.line.width) == ("diamond-open", 14, 2)
    assert (simulated.marker.color, simulated.marker.pattern.shape) == ("#FFFFFF", "/")
    assert (simulated.marker.pattern.fgcolor, simulated.marker.line.width) == ("#0072B2", 1.5)
    assert measured.marker.color == "#0072B2" and measured.marker.pattern.shape is None


def test_values_stand_on_one_axis_in_the_order_given():
    figure = chart()
    assert [t.x for t in figure.figure.data] == [(24_576, 12_288)] * 3
    assert [t.y for t in figure.figure.data] == [("naive, rank 0", "ring")] * 3
    assert figure.figure.layout.yaxis.autorange == "reversed"
    assert figure.figure.layout.height == 64 + 72 + 2 * 60
    assert figure.figure.layout.xaxis.range == (0, 1.22 * 24_576)
    assert figure.figure.layout.title.subtitle.text == UNDER


def test_equal_values_have_one_label():
    assert labels(chart()) == {"naive, rank 0": "24,576<br>(all equal)", "ring": "12,288<br>(all equal)"}


def test_values_that_differ_are_all_named():
    figure = chart({"ring": Three(12_288, 12_288, 12_290)})
    assert labels(figure) == {"ring": "law 12,288<br>simulated 12,288<br>measured 12,290"}
    assert figure.words.endswith("ring: law 12,288, simulated 12,288, measured 12,290 bytes, which differ.")


def test_a_witness_that_was_not_asked_is_left_out():
    figure = chart({"ring": Three(law=6, measured=6), "tree": Three(law=4)}, unit="messages")
    assert labels(figure) == {"ring": "6<br>(both equal)", "tree": "4"}
    assert [t.name for t in figure.figure.data] == ["law", "measured"]  # nor does the legend name it
    assert figure.words == "Bytes each rank sends. ring: law = measured = 6 messages. tree: law = 4 messages."


def test_seconds_are_scaled_and_what_a_clock_said_stands_apart():
    figure = chart({"ring": Three(3e-3, 3.2e-3, 4.5e-3)}, unit="s")
    assert [t.x[0] for t in figure.figure.data] == pytest.approx([3.0, 3.2, 4.5])
    assert figure.figure.layout.xaxis.title.text == "ms"
    assert labels(figure) == {"ring": "law 3 ms<br>simulated 3.2 ms<br>measured 4.5 ms"}
    assert figure.words == "Bytes each rank sends. ring: law 3 ms, simulated 3.2 ms."
    assert figure.times == "ring: measured 4.5 ms."


def test_words_come_from_the_values():
    assert chart().words == (
        "Bytes each rank sends. naive, rank 0: law = simulated = measured = 24,576 bytes. "
        "ring: law = simulated = measured = 12,288 bytes."
    )
    assert chart({"ring": Three(7, 7, 7)}).words != chart({"ring": Three(8, 8, 8)}).words


def test_all_zero_is_drawn():
    assert chart({"one rank": Three(0, 0, 0)}).figure.layout.xaxis.range == (0, 1.22)


def test_long_names_are_wrapped():
    assert chart({"hierarchical, groups of 4": Three(1)}).figure.data[0].y == ("hierarchical, groups<br>of 4",)


@pytest.mark.parametrize(("rows", "got"), [({}, "no value for any row"), ({"ring": Three()}, "no value for ring")])
def test_nothing_to_compare(rows, got):
    with pytest.raises(UserError, match=f"nothing to compare; got {got}; expected a law or a value a row"):
        chart(rows)


def test_the_same_stands_in_a_table_with_what_makes_them_differ():
    assert chart().rows[:2] == (
        ("", "law", "simulated", "measured", "why they differ"),
        ("naive, rank 0", "24,576", "24,576", "24,576", "all equal"),
    )
    assert chart({"ring": Three(6, None, 7)}).rows[1] == ("ring", "6", "–", "7", "they should not: something is wrong")


@pytest.mark.parametrize(
    ("three", "why"),
    [
        (Three(4.5e-3, 4.6e-3, 6e-3), "4.5 ms by the law; the other 1.5 ms (25%): waiting, waking up, adding"),
        (Three(0.5, 0.5, 0.51), "500 ms by the law; the other 10 ms (2%): waiting, waking up, adding"),
        (Three(None, 2.0, 8.0), "2 s by the simulation; the other 6 s (75%): waiting, waking up, adding"),
        (Three(3.0, 3.0, 2.5), "measured 500 ms less than the law, which takes one thing after the other"),
        (Three(3.0, 2.0), "simulated 1 s less than the law, which takes one thing after the other"),
        (Three(3.0, 3.5), "simulated 500 ms more than the law, which takes all chunks as even"),
        (Three(3.0, 2.0, 3.0), "measured as the law says"),
        (Three(2.0, 2.0, 2.0), "all equal"),
        (Three(0.0, 0.0, 1e-3), "0 s by the law; the other 1 ms (100%): waiting, waking up, adding"),
    ],
)
def test_measured_seconds_are_split_into_what_is_priced_and_what_is_not(three, why):
    assert chart({"ring": three}, unit="s").rows[1][4] == why
