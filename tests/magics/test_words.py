"""What ranks print and give is told by rank, stderr by a word, and very much of it is cut with a note."""

import pytest

from lt_core.comm.group import Line
from lt_core.magics.words import LAST, MOST_CHARACTERS, MOST_LINES, bounded, given, printed


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (Line((0,), "out", "hello"), "rank 0: hello"),
        (Line((1,), "err", "careful"), "rank 1 stderr: careful"),
        (Line((0, 1, 2, 3), "out", "hello"), "ranks 0-3: hello"),
        (Line((2,), "out", "ah", late=True), "rank 2, from before: ah"),
        (Line((2,), "err", "ah", late=True), "rank 2 stderr, from before: ah"),
        (Line((), "err", "4 new ranks"), "group: 4 new ranks"),
        (Line((0,), "out", " 50 %\r"), "rank 0:  50 %"),
        (Line((0,), "out", ""), "rank 0: "),
    ],
)
def test_a_line_has_its_ranks_in_front(line, text):
    assert printed(line) == text


def test_equal_values_stand_together():
    assert given({2: "5", 0: "6", 1: "5", 3: "5"}) == ["rank 0 -> 6", "ranks 1-3 -> 5"]


def test_later_lines_of_a_value_stand_under_its_first():
    assert given({0: "tensor([[1],\n        [2]])"}) == ["rank 0 -> tensor([[1],\n                  [2]])"]


def test_what_is_not_long_is_whole():
    lines = [f"rank 0: {number}" for number in range(MOST_LINES)]
    assert bounded(lines) == "\n".join(lines)


def test_many_lines_leave_the_first_and_the_last():
    lines = [f"rank 0: {number}" for number in range(50_000)]
    shown = bounded(lines).splitlines()
    assert shown[0] == lines[0] and shown[-LAST:] == lines[-LAST:] and len(shown) == MOST_LINES + 1
    assert shown[MOST_LINES - LAST].startswith("... 49,000 lines are not shown (")


@pytest.mark.parametrize("length", [3_000, 60_000, pytest.param(10_000_000, marks=pytest.mark.full)])
def test_long_lines_are_bounded_too(length):
    lines = [f"rank {number}: {'x' * length}" for number in range(100)]
    shown = bounded(lines)
    first, last = (sum(line.startswith(f"rank {n}:") for line in shown.splitlines()) for n in (0, 99))
    assert len(shown) <= MOST_CHARACTERS and first == last == (length < MOST_CHARACTERS // 4)
    assert "lines are not shown (" in shown
