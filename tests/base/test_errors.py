"""A user's error says what, got, expected, try; it crosses between processes whole, and a notebook shows it alone."""

import pickle

import pytest

from lt_core.base.errors import Aborted, Deadline, Mismatch, Misuse, RankError, ScheduleError, UserError

USERS = [UserError, ScheduleError, Mismatch, Misuse]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UserError("3 stages cannot take 2 layers"), "3 stages cannot take 2 layers"),
        (UserError("no rank 9", 9, "0 to 3"), "no rank 9; got 9; expected 0 to 3"),
        (UserError("no rank 0", 0), "no rank 0; got 0"),
        (UserError("too many stages", attempt="use at most 2"), "too many stages; try: use at most 2"),
        (UserError("a", "b", "c", "d"), "a; got b; expected c; try: d"),
    ],
)
def test_text(error, text):
    assert str(error) == text


@pytest.mark.parametrize("kind", USERS)
def test_users_errors_are_value_errors_and_cross_whole(kind):
    again = pickle.loads(pickle.dumps(kind("a", 1, (2, 3), "d")))
    assert type(again) is kind and isinstance(again, ValueError)
    assert (again.what, again.got, again.expected, again.attempt, str(again)) == (
        "a", 1, (2, 3), "d", "a; got 1; expected (2, 3); try: d",
    )  # fmt: skip


def test_the_drawing_of_a_schedule_stands_below_the_words():
    error = pickle.loads(pickle.dumps(ScheduleError("a", attempt="b", drawing="0: !0F0")))
    assert str(error) == "a; try: b\n0: !0F0" and error.drawing == "0: !0F0"


@pytest.mark.parametrize(
    ("error", "family"), [(Deadline("rank 0 waits"), TimeoutError), (Aborted("rank 1 left"), RuntimeError)]
)
def test_the_others_cross_too(error, family):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and isinstance(again, family) and str(again) == str(error)


def test_a_rank_error_names_who_failed_first_and_how():
    error = pickle.loads(pickle.dumps(RankError(2, "KeyError", "'w'", "Traceback: line 3")))
    assert (error.rank, error.kind, error.message, error.details) == (2, "KeyError", "'w'", "Traceback: line 3")
    assert str(error) == "rank 2 failed first: KeyError: 'w'\nTraceback: line 3"
    assert str(RankError(0, "ValueError", "x")) == "rank 0 failed first: ValueError: x"


def test_where_no_rank_was_first_none_is_said_to_be():
    error = pickle.loads(pickle.dumps(RankError(0, "Deadline", "a circle", "where the ranks are:", shared=True)))
    assert (str(error), error.shared) == ("Deadline: a circle\nwhere the ranks are:", True)


@pytest.mark.parametrize("error", [*(kind("a") for kind in USERS), Deadline("a"), Aborted("a")])
def test_a_notebook_shows_the_text_alone(error):
    assert error._render_traceback_() == [f"{type(error).__name__}: a"]
