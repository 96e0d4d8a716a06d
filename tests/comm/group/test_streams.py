"""A rank's pipe: bytes in pieces of any size give the same whole lines, bounded, and every mark is found."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from lt_core.comm.group import streams
from lt_core.comm.group.streams import Stream

MARK = b"\0nonce "


def fed(data: bytes, *cuts: int) -> tuple[list[str], Stream]:
    stream = Stream(-1, 3, "out", "nonce")
    places = sorted({0, *(cut % (len(data) + 1) for cut in cuts), len(data)})
    heard = [line for a, b in itertools.pairwise(places) for line in stream.feed(data[a:b], late=False)]
    return [line.text for line in heard if not line.text.endswith("\r")], stream


def test_whole_lines_come_as_they_are():
    assert fed(b"one\n\ntwo\nthr")[0] == ["one", "", "two"]
    stream = Stream(-1, 3, "err", "nonce")
    (line,) = stream.feed(b"a\n", late=True)
    assert (line.rank, line.stream, line.text, line.late) == (3, "err", "a", True)


def test_a_mark_ends_the_line_before_it():
    texts, stream = fed(b"no end" + MARK + b"12\nnext\n" + MARK + b"13\n")
    assert (texts, stream.mark, stream.last) == (["no end", "next"], 13, "next")


def test_a_mark_alone_is_one_too_and_what_was_before_it_is_not_lost():
    stream = Stream(-1, 3, "out", "nonce")
    for number, before, heard in ((1, b"", []), (2, b"half", ["half"]), (3, b"", []), (4, b"a\n", ["a"]), (5, b"", [])):
        texts = [line.text for line in stream.feed(before, late=False)] if before else []
        texts += [line.text for line in stream.feed(MARK + b"%d\n" % number, late=False)]
        assert (texts, stream.mark) == (heard, number)
    stream.forget()
    assert stream.feed(MARK + b"6\n", late=False) == [] and not stream.forgetting
    assert [line.text for line in stream.feed(MARK + b"7\nnext\n", late=False)] == ["next"] and stream.mark == 7


@given(
    st.lists(st.binary(max_size=200).filter(lambda b: b"\0" not in b and b"\n" not in b and b"\r" not in b)),
    st.lists(st.integers(0, 10_000), max_size=8),
)
def test_pieces_of_any_size_give_the_same_lines(lines, cuts):
    data = b"".join(line + b"\n" for line in lines) + MARK + b"5\n"
    texts, stream = fed(data, *cuts)
    assert texts == [line.decode("utf-8", "replace") for line in lines] and stream.mark == 5


def test_bytes_that_are_no_text_are_replaced():
    assert fed(b"caf\xe9 \xff\xfe\n")[0] == ["caf� ��"]


def test_ten_megabytes_without_an_end_are_cut_and_the_mark_behind_them_is_found():
    texts, stream = fed(b"x" * 10_000_000 + MARK + b"4\nafter\n", *range(0, 10_000_000, 65_536))
    assert texts == ["x" * streams.LONGEST_BYTES + " ... (10 MB in all)", "after"] and stream.mark == 4
    assert len(stream._head) + len(stream._tail) < 200


def test_many_lines_are_bounded_and_the_last_are_shown():
    data = b"".join(b"line %d\n" % i for i in range(5000)) + MARK + b"1\nnext cell\n"
    texts, _ = fed(data)
    assert texts[: streams.MOST_LINES] == [f"line {i}" for i in range(streams.MOST_LINES)]
    note, *last = texts[streams.MOST_LINES :]
    assert note == "... 2980 lines are not shown (27 kB with the 20 that follow)"
    assert last == [f"line {i}" for i in range(4980, 5000)] + ["next cell"]


def test_many_bytes_are_bounded_too():
    texts, _ = fed(b"".join(b"%05d" % i + b"y" * 995 + b"\n" for i in range(400)) + MARK + b"1\n")
    shown = streams.MOST_BYTES // 1000
    assert len(texts) == shown + 1 + streams.LAST and texts[shown].startswith(f"... {400 - shown - 20} lines")


def test_a_progress_bar_is_one_line_and_its_states_are_shown_now_and_then(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(streams.time, "monotonic", lambda: next(clock) * 0.01)
    stream = Stream(-1, 0, "err", "nonce")
    states = [line.text for i in range(100) for line in stream.feed(b"\r%3d %%" % i, late=False)]
    assert 5 <= len(states) <= 30 and all(state.endswith(" %\r") for state in states)
    assert [line.text for line in stream.feed(b"\r100 %\n", late=False)] == ["100 %"]


def test_windows_line_ends_are_line_ends():
    assert fed(b"one\r\ntwo\r\n")[0] == ["one", "two"]


def test_what_was_interrupted_is_forgotten_up_to_its_mark():
    stream = Stream(-1, 0, "out", "nonce")
    stream.feed(b"shown\nhalf", late=False)
    stream.forget()
    assert stream.feed(b" a line\nmore\n" + MARK + b"3\nnew\n", late=True)[0].text == "new"


def test_the_rest_is_given_when_it_is_asked_for():
    stream = Stream(-1, 0, "err", "nonce")
    assert stream.feed(b"terminate called", late=False) == []
    assert [line.text for line in stream.rest(late=False)] == ["terminate called"]
    assert stream.rest(late=False) == [] and stream.last == "terminate called"
