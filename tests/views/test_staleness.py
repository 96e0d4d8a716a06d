"""The version strip: a bar a gradient from the version read to the version made; its words come from the trace."""

import pytest

from lt_core.base.errors import UserError
from lt_core.base.trace import Mark, Trace
from lt_core.views import version_strip


def trace(*gradients, clock="simulated"):
    """(rank, clock, server, read, version, dropped) each."""
    marks = [
        Mark(r, float(k), "staleness", {"clock": c, "server": s, "read": v, "version": w, "written": None if d else w})
        for k, (r, c, s, v, w, d) in enumerate(gradients)
    ]
    return Trace("t", marks=[*marks, Mark(0, 9.0, "loss_scale", 8)], clock=clock)


TWO = trace((0, 0, 2, 0, 1, False), (0, 1, 2, 1, 2, False), (1, 0, 2, 0, 3, False), (0, 2, 2, 2, 4, False))


def test_a_bar_a_gradient():
    new, old = version_strip(TWO).figure.data
    assert (new.name, list(new.base), list(new.x), list(new.y)) == ("of the newest version", [0, 1], [1, 1], [0, 0])
    assert (old.name, list(old.base), list(old.x), list(old.y)) == ("some updates old", [2, 0], [2, 3], [0, 1])
    assert list(old.text) == ["1", "2"] and old.marker.pattern.shape == "\\"


def test_the_words_come_from_the_trace():
    words = version_strip(TWO).describe(stable=True)
    assert words.startswith("Rank 1's oldest gradient is 2 updates old. A bar a gradient, a lane for each of 2 ranks")
    assert "Rank 0: 3 gradients, 0.333 updates old on average and 1 at most. Rank 1: 1 gradient, 2 updates" in words
    other = version_strip(trace((0, 0, 1, 0, 1, False))).words
    assert other.startswith("Rank 0's oldest gradient is 0 updates old.") and "Rank 1" not in other
    assert version_strip(TWO).rows[1] == ("0", "3", "0.33", "1", "0")


def test_what_a_clock_decided_is_not_among_the_exact_words():
    measured = trace((0, 0, 1, 0, 4, False), clock="measured")
    figure = version_strip(measured, title="The slow one is old")
    assert "3 updates" not in figure.words and "3 updates" in figure.times


def test_a_dropped_gradient_ends_where_it_was_dropped():
    (dropped,) = version_strip(trace((3, 0, 4, 1, 8, True))).figure.data
    assert (dropped.name, list(dropped.base), list(dropped.x), list(dropped.text)) == ("dropped", [1], [7], ["×"])
    assert "Rank 3: 1 gradient, 1 dropped." in version_strip(trace((3, 0, 4, 1, 8, True))).words


def test_of_several_servers_the_first_is_drawn_and_versions_can_be_cut_out():
    several = trace((0, 0, 3, 5, 9, False), (0, 0, 2, 0, 1, False), (0, 1, 2, 1, 5, False))
    bars = [bar for data in version_strip(several).figure.data for bar in zip(data.base, data.x)]
    assert bars == [(0, 1), (1, 4)]
    assert version_strip(several, versions=(2, 5)).figure.layout.xaxis.range[0] == 2


def test_a_bar_that_is_cut_has_its_number_in_the_middle_of_what_is_seen():
    """Its own end stands outside: it would say that the gradient read or made another version than it did."""
    (long,) = version_strip(trace((0, 0, 0, 1, 95, False)), versions=(20, 60)).figure.data
    low, high = version_strip(trace((0, 0, 0, 1, 95, False)), versions=(20, 60)).figure.layout.xaxis.range
    (start,), (length,) = long.base, long.x
    assert start < low and start + length > high and start + length / 2 == pytest.approx(40)
    assert long.hovertext == ("rank 0, gradient 0<br>read version 1, made version 95<br>93 updates old",)


def test_a_trace_without_marks():
    with pytest.raises(UserError) as caught:
        version_strip(Trace("plain"))
    assert str(caught.value) == "plain has no marks of staleness; try: marked(trace)"
