"""While a cell runs its last lines are drawn as they come; what stays is sorted by rank, whoever was quicker."""

import threading

import pytest

from lt_core.comm.group import Line
from lt_core.magics.live import WIDTH, WINDOW, Live, Printed


class Paper:
    """What was drawn, and what was kept in the end."""

    def __init__(self):
        self.drawn, self.kept, self._changed = [], None, threading.Condition()

    def draw(self, text):
        with self._changed:
            self.drawn.append(text)
            self._changed.notify_all()

    def keep(self, text):
        self.kept = text

    def until(self, text):
        """Hold until the drawing shows that text."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.drawn and self.drawn[-1] == text, 20), self.drawn


@pytest.fixture
def paper():
    return Paper()


def lines(*said):
    return [Line((rank,), "out", text) for rank, text in said]


def test_lines_are_drawn_while_the_cell_runs(paper):
    with Live(paper) as live:
        live.show(Line((1,), "out", "first"))
        paper.until("rank 1: first")
        live.show(Line((0,), "err", "second"))
        paper.until("rank 1: first\nrank 0 stderr: second")
    assert paper.kept == "rank 1: first\nrank 0 stderr: second"


def test_where_everybody_is_stands_below_and_goes_with_the_next_line(paper):
    with Live(paper) as live:
        live.progress("ranks 0-1: in all_reduce, line 3")
        paper.until("... ranks 0-1: in all_reduce, line 3")
        live.show(Line((0,), "out", "on"))
        paper.until("rank 0: on")
    assert paper.kept == "rank 0: on"


def test_a_progress_bar_is_one_line(paper):
    with Live(paper) as live:
        for percent in range(0, 100, 10):
            live.show(Line((0,), "err", f"{percent} %\r"))
        live.show(Line((1,), "out", "else"))
        paper.until("rank 1: else\nrank 0 stderr: 90 %")
        live.show(Line((0,), "err", "100 %"))
        paper.until("rank 1: else\nrank 0 stderr: 100 %")
    assert paper.kept == "rank 1: else\nrank 0 stderr: 100 %"


def test_a_flood_is_drawn_in_few_short_drawings(paper):
    with Live(paper) as live:
        for number in range(5000):
            live.show(Line((0,), "out", f"{number} {'x' * 10 * WIDTH}"))
        live.show(Line((0,), "out", "end"))
        live.progress("here")
        shown = [f"rank 0: {number} {'x' * 10 * WIDTH}"[:WIDTH] + " ..." for number in range(5001 - WINDOW, 5000)]
        paper.until("\n".join([f"... {5001 - WINDOW:,} lines above", *shown, "rank 0: end", "... here"]))
    assert len(paper.drawn) < 100


def test_a_cell_that_ends_at_once_is_not_drawn(paper):
    with Live(paper) as live:
        live.show(Line((0,), "out", "quick"))
    assert (paper.drawn, paper.kept) == ([], "rank 0: quick")


def test_what_is_kept_does_not_depend_on_who_was_quicker(paper):
    said = lines((0, "a"), (0, "same"), (0, "b")), lines((1, "c"), (1, "same"), (1, "d"))
    orders = [[*said[0], *said[1]], [*said[1], *said[0]], [line for pair in zip(*said) for line in pair]]
    kept = set()
    for order in orders:
        with Live(paper) as live:
            for line in order:
                live.show(line)
        kept.add(paper.kept)
    assert kept == {"rank 0: a\nrank 1: c\nranks 0-1: same\nrank 0: b\nrank 1: d"}


def test_values_and_sentences_stand_below_what_was_printed(paper):
    with Live(paper) as live:
        live.say("saved ring.py")
        live.values({0: "1", 1: "2"})
        live.show(Line((0, 1), "out", "hello"))
    assert paper.kept == "ranks 0-1: hello\nrank 0 -> 1\nrank 1 -> 2\nsaved ring.py"


def test_a_cell_without_output_keeps_nothing(paper):
    with Live(paper) as live:
        live.values({})
    assert (paper.drawn, paper.kept) == ([], "")


def test_lines_stay_when_the_cell_fails(paper):
    with pytest.raises(KeyError), Live(paper) as live:
        live.show(Line((0,), "out", "before"))
        raise KeyError(3)
    assert paper.kept == "rank 0: before"


def test_no_thread_outlives_the_cell(paper):
    before = threading.active_count()
    with Live(paper) as live:
        live.progress("here")
        assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_a_terminal_gets_lines_as_they_come(capsys):
    with Printed() as printed:
        printed.show(Line((0,), "out", "hello"))
        assert capsys.readouterr().out == "rank 0: hello\n"
        printed.show(Line((0,), "out", "50 %\r"))
        printed.progress("here")
        printed.values({})
        assert capsys.readouterr().out == ""
        printed.values({0: "1", 1: "1"})
        printed.say("saved")
        assert capsys.readouterr().out == "ranks 0-1 -> 1\nsaved\n"
