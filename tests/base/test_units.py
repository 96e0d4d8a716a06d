"""Chunks cover a tensor exactly; sizes, times and rates read as they were written."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lt_core.base.errors import UserError
from lt_core.base.units import (
    bounds,
    bytes_text,
    parse_bytes,
    parse_rate,
    parse_seconds,
    rate_text,
    seconds_text,
    told_apart,
)


def test_the_cuts_of_ten_elements_in_four_chunks():
    assert [bounds(10, i, 4) for i in range(4)] == [(0, 2), (2, 5), (5, 7), (7, 10)]


@given(st.integers(0, 10**12), st.integers(1, 300))
def test_chunks_cover_all_and_differ_by_one_at_most(elements, parts):
    cuts = [bounds(elements, i, parts) for i in range(parts)]
    assert cuts[0][0] == 0 and cuts[-1][1] == elements
    assert all(left[1] == right[0] for left, right in pairwise(cuts))
    assert {high - low for low, high in cuts} <= {elements // parts, elements // parts + 1}


@given(st.integers(0, 10**9), st.integers(1, 64), st.data())
def test_several_chunks_are_one_range(elements, parts, data):
    index = data.draw(st.integers(0, parts - 1))
    count = data.draw(st.integers(1, parts - index))
    expected = (bounds(elements, index, parts)[0], bounds(elements, index + count - 1, parts)[1])
    assert bounds(elements, index, parts, count) == expected


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [(0, "0 B"), (999, "999 B"), (999.96, "1 kB"), (1000, "1 kB"), (1_677_721, "1.68 MB"), (2**30, "1.07 GB")],
)
def test_bytes_text(nbytes, text):
    assert bytes_text(nbytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (1e-9, "1 ns"), (0.00002, "20 us"), (0.02016, "20.2 ms"), (0.9999, "1 s"), (61.5, "61.5 s")],
)
def test_seconds_text(seconds, text):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"), [(1.25e9, "10 Gbit/s"), (450e9, "3.6 Tbit/s"), (12.5e6, "100 Mbit/s"), (0, "0 bit/s")]
)
def test_rate_text(rate, text):
    assert rate_text(rate) == text


@pytest.mark.parametrize(
    ("one", "other", "texts"),
    [
        (5812.75, 5806.94, ("5,813", "5,807")), (5806.9, 5806.4, ("5,807", "5,806")),
        (5806.91, 5806.92, ("5,806.91", "5,806.92")), (1.5, 2, ("1.5", "2")),
        (0.51234, 0.51236, ("0.5123", "0.5124")), (0, 23456.0, ("0", "23,456")),
        (-3.25, 3.25, ("-3.25", "3.25")), (7, 7.0, ("7", "7")),
        (float("nan"), 1.0, ("nan", "1")), (1e300, 1.0, ("1e+300", "1")), (100, 1000, ("100", "1,000")),
    ],
)  # fmt: skip
def test_two_numbers_are_written_so_that_they_can_be_told_apart(one, other, texts):
    assert told_apart(one, other) == texts


@pytest.mark.parametrize(("text", "nbytes"), [("16 MiB", 2**24), ("1.5 kB", 1500), ("4096", 4096), ("2GiB", 2**31)])
def test_parse_bytes(text, nbytes):
    assert parse_bytes(text) == nbytes


def test_parse_seconds_and_rates():
    assert [parse_seconds(text) for text in ("2 s", "0.1 ms", "10us")] == pytest.approx([2, 1e-4, 1e-5])
    assert [parse_rate(text) for text in ("10 Gbit/s", "1.2 GB/s")] == pytest.approx([1.25e9, 1.2e9])


@given(st.floats(1e-8, 1e6))
def test_a_time_reads_as_it_was_written(seconds):
    assert parse_seconds(seconds_text(seconds)) == pytest.approx(seconds, rel=6e-3)


@pytest.mark.parametrize("parse", [parse_bytes, parse_seconds, parse_rate])
@pytest.mark.parametrize("text", ["", "fast", "12 parsecs", "-3 s", "1 2 s"])
def test_what_cannot_be_read(parse, text):
    with pytest.raises(UserError, match=r"cannot be read; expected .* like .*; try: units are "):
        parse(text)
