"""Who sends how much to whom: every number of the matrix and of its words is the trace's or the traffic's."""

import pytest

from lt_core.base import Span, Trace, Traffic
from lt_core.views import wires
from tests.views.traces import pipeline, ring


def numbers(figure):
    """{(row, column): text} of what is written in the cells."""
    return {(y, x): text for t in figure.figure.data[1:] for y, x, text in zip(t.y, t.x, t.text)}


def traffic(*sent):
    """A Traffic a rank, from {peer: bytes}."""
    whole = [Traffic() for _ in sent]
    for one, to in zip(whole, sent):
        for peer, nbytes in to.items():
            one.counted.add(peer, nbytes)
    return whole


def test_nothing_was_sent():
    for source in (Trace("empty"), pipeline(), traffic({}, {}), []):
        assert wires(source).words == "No rank sends anything."


@pytest.mark.parametrize("size", [2, 4, 8])
def test_a_ring_fills_one_link_a_rank(size):
    figure = wires(ring(size))
    sent = 2 * (size - 1) * 1024
    for r in range(size):
        row = [figure.figure.data[0].z[r][c] for c in range(size)]
        assert row == [None if c == r else sent if c == (r + 1) % size else 0 for c in range(size)]
    assert figure.title == f"Each of {size} ranks sends {sent:,} bytes"
    assert f"{size} of {size * (size - 1)} links are used" in figure.words
    assert figure.words.endswith(f"rank 0 to rank 1, {sent:,} bytes in {2 * (size - 1)} messages.")


def test_rows_send_and_columns_receive_and_sums_are_written():
    figure = wires(traffic({1: 1000, 2: 20}, {2: 300}, {}))
    rows = [[numbers(figure).get((r, c)) for c in range(4)] for r in range(4)]
    assert rows == [
        [None, "1,000", "20", "1,020"],
        ["·", None, "300", "300"],
        ["·", "·", None, "·"],
        ["·", "1,000", "320", "1,320"],
    ]
    assert figure.figure.layout.yaxis.ticktext == ("rank 0", "rank 1", "rank 2", "all")
    assert figure.figure.layout.xaxis.title.text == "to rank, in bytes"
    assert figure.figure.data[0].hovertext[0][1] == "rank 0 sends 1,000 bytes to rank 1<br>in 1 message"
    assert figure.figure.data[0].hovertext[3][2] == "all ranks send 320 bytes to rank 2<br>in 2 messages"
    assert figure.words == (
        "Rank 0 sends most: 1,020 bytes of 1,320 bytes. "
        "3 of 6 links are used; the fullest is rank 0 to rank 1, 1,000 bytes in 1 message."
    )


def test_what_follows_from_a_law_is_said():
    two = traffic({1: 100}, {0: 100})
    two[0].by_law.add(1, 50)
    figure = wires(two)
    assert numbers(figure)[0, 1] == "150"
    assert figure.words.endswith("50 of these bytes were not counted but follow from the backend's law.")
    assert two[0].counted.bytes == 100  # the two stay apart where they are kept


def test_bytes_without_a_receiver_are_said():
    spans = [Span(0, "out", "0SEND0>1", 0.0, 1.0, 8), Span(1, "out", "0SCATTER0", 0.0, 1.0, 64)]
    assert wires(Trace("zero", spans)).words.endswith("64 bytes more left in collectives, which name no receiver.")


def test_a_message_without_bytes_was_not_sent():
    spans = [Span(0, "out", "0SEND0>1", 0.0, 1.0, 8), Span(0, "out", "1SEND1>1", 1.0, 1.0, 0)]
    assert "8 bytes in 1 message." in wires(Trace("uneven", spans)).words


def test_where_bytes_are_unknown_messages_are_counted():
    figure = wires(ring(4, chunk_bytes=0))
    assert figure.title == "Each of 4 ranks sends 6 messages"
    assert numbers(figure)[0, 1] == "6" and figure.figure.layout.xaxis.title.text == "to rank, in messages"


@pytest.mark.parametrize(
    ("size", "chunk_bytes", "text", "unit", "font"),
    [
        (4, 1024, "6,144", "bytes", 13),
        (8, 2**20, "14.7", "MB", 13),
        (16, 1024, "30.7", "kB", 11),
        (2, 10**12, "2,000,000,000,000", "bytes", 13),
    ],
)
def test_numbers_fit_in_their_cells(size, chunk_bytes, text, unit, font):
    figure = wires(ring(size, chunk_bytes=chunk_bytes))
    assert numbers(figure)[0, 1] == text
    assert figure.figure.layout.xaxis.title.text == f"to rank, in {unit}"
    assert figure.figure.data[1].textfont.size == font


def test_many_ranks_keep_the_shades_and_lose_the_numbers():
    figure = wires(ring(24))
    assert numbers(figure) == {} and figure.figure.data[0].z[0][1] == 46 * 1024


def test_titles_that_would_be_too_long_are_rounded_and_words_are_not():
    figure = wires(traffic({1: 10**18 + 1}, {0: 10**17}))
    assert figure.title == "Rank 0 sends most: 1e+06 TB of 1.1e+06 TB"
    assert "1,000,000,000,000,000,001 bytes of" in figure.words
    assert wires(ring(3), title="Everyone sends alike").words.startswith("Everyone sends alike. Each of 3 ranks sends")
