"""What all ranks say alike is shown once, whoever was quicker; a saved page does not depend on who was."""

import itertools

import pytest

from lt_core.comm.group import Line, settled
from lt_core.comm.group.fold import WINDOW_S, Fold
from lt_core.comm.group.streams import Heard


def heard(rank: int, text: str, at_s: float = 0.0, stream: str = "out", late: bool = False) -> Heard:
    return Heard(rank, stream, text, late, at_s)


def taken(fold: Fold, now_s: float) -> list[tuple[tuple[int, ...], str]]:
    return [(line.ranks, line.text) for line in fold.take(now_s)]


def test_what_all_said_is_shown_at_once_and_once():
    fold = Fold((0, 1, 2))
    fold.add([heard(2, "hi"), heard(0, "hi")])
    assert taken(fold, 0.0) == [] and fold.due_s == WINDOW_S
    fold.add([heard(1, "hi")])
    assert taken(fold, 0.0) == [((0, 1, 2), "hi")] and fold.due_s is None


def test_who_waits_too_long_is_shown_alone():
    fold = Fold((0, 1))
    fold.add([heard(0, "mine", 1.0)])
    assert taken(fold, 1.0 + WINDOW_S / 2) == []
    assert taken(fold, 1.0 + WINDOW_S) == [((0,), "mine")]


def test_a_line_of_one_rank_does_not_keep_the_others_apart():
    fold = Fold((0, 1))
    fold.add([heard(0, "only 0"), heard(0, "both"), heard(1, "both")])
    assert taken(fold, 1.0) == [((0,), "only 0"), ((0, 1), "both")]


def test_streams_and_late_lines_are_not_mixed():
    fold = Fold((0, 1))
    fold.add([heard(0, "a"), heard(1, "a", stream="err"), heard(1, "a", late=True)])
    lines = sorted(fold.take(1.0))
    assert lines == [Line((0,), "out", "a"), Line((1,), "err", "a"), Line((1,), "out", "a", late=True)]


def test_each_ranks_order_is_kept():
    fold = Fold((0, 1))
    fold.add([heard(rank, f"{rank}.{i}", i * 0.001) for i in range(20) for rank in (1, 0)])
    lines = taken(fold, 9.0)
    for rank in (0, 1):
        assert [text for ranks, text in lines if ranks == (rank,)] == [f"{rank}.{i}" for i in range(20)]


def test_lines_of_a_rank_that_does_not_run_the_cell_are_shown():
    fold = Fold((0,))
    fold.add([heard(1, "from a thread"), heard(0, "x")])
    assert sorted(taken(fold, 1.0)) == [((0,), "x"), ((1,), "from a thread")]


SAID = {0: ["start", "mine 0", "loss 1", "end"], 1: ["start", "loss 1", "end"], 2: ["start", "loss 2", "end", "extra"]}


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_saved_page_is_the_same_whoever_was_quicker(order):
    lines = [Line((rank,), "out", text) for rank in order for text in SAID[rank]]
    assert [(line.ranks, line.text) for line in settled(lines)] == [
        ((0, 1, 2), "start"),
        ((0,), "mine 0"), ((0,), "loss 1"), ((1,), "loss 1"), ((2,), "loss 2"),
        ((0, 1, 2), "end"),
        ((2,), "extra"),
    ]  # fmt: skip


def test_a_saved_page_folds_what_was_shown_apart_and_drops_what_was_overwritten():
    lines = [
        Line((), "err", "a new group starts"), Line((1,), "err", " 50 %\r"), Line((1,), "err", "100 %"),
        Line((1,), "out", "x"), Line((0, 1), "out", "y"), Line((0,), "out", "x"), Line((0,), "err", "100 %"),
    ]  # fmt: skip
    assert [(line.ranks, line.stream, line.text) for line in settled(lines)] == [
        ((), "err", "a new group starts"), ((1,), "out", "x"), ((0, 1), "out", "y"), ((0,), "out", "x"),
        ((0, 1), "err", "100 %"),
    ]  # fmt: skip


def test_nothing_is_nothing():
    assert settled([]) == []
