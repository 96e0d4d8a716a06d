"""The answer comes from the run, beside what was said, with points, the derivation, and the usual wrong answer."""

import pytest
import torch

from lt_core.base import UserError
from lt_core.teaching import predict, reveal

WHY = "each number leaves your rank at most twice: 2 (p - 1) / p = 1.75"
USUAL = "7: “everyone must hear from everyone”"


def said(learner, guess, sure=2, **more):
    predict("20.ring_bytes", "bytes each rank sends", unit="n", guess=guess, sure=sure, learner=learner, **more)


@pytest.mark.parametrize(
    ("guess", "verdict"),
    [(1.75, "right, 3"), (2, "within a quarter, 2"), (3, "within a factor of two, 1"), (7, "far off, 0")],
)
def test_what_was_said_what_is_right_and_why(learner, capsys, guess, verdict):
    said(learner, guess)
    capsys.readouterr()
    reveal("20.ring_bytes", 1.75, why=WHY, usual=USUAL, learner=learner)
    assert capsys.readouterr().out == (
        f"You said {guess} n, fairly sure. It is 1.75 n: {verdict} of 3 points.\n"
        f"Why: {WHY}\nThe usual wrong answer: {USUAL}\n"
    )


@pytest.mark.parametrize("guess", [120, 119.6, 120.4])
def test_the_usual_wrong_answer_has_no_points_however_near_it_is(learner, capsys, guess):
    said(learner, guess)
    capsys.readouterr()
    reveal("20.ring_bytes", 125, usual="120: “overlap hides everything”", wrong=[100, 120], learner=learner)
    assert f"You said {guess} n, fairly sure. It is 125 n: the usual wrong answer, 0 of 3" in capsys.readouterr().out
    assert [r["points"] for r in learner.records("reveal")] == [0]


@pytest.mark.parametrize(
    ("guess", "right", "verdict"),
    [(118, 125, "within a quarter, 2"), (124.5, 125, "right, 3"), (0, 125, "the usual wrong answer, 0")],
)
def test_who_says_something_else_is_judged_by_what_is_right(learner, capsys, guess, right, verdict):
    said(learner, guess)
    reveal("20.ring_bytes", right, wrong=[120, 124.4, 0], learner=learner)
    assert f": {verdict} of 3 points." in capsys.readouterr().out


def test_without_a_guess_here_is_the_answer(learner, capsys):
    predict("20.ring_bytes", "bytes each rank sends", unit="n", learner=learner)
    capsys.readouterr()
    reveal("20.ring_bytes", 1.75, why=WHY, learner=learner)
    assert capsys.readouterr().out == f"no guess; here is the answer: 1.75 n\nWhy: {WHY}\n"
    assert learner.records("reveal") == []  # so that the prediction can still be made


def test_even_without_the_question_the_notebook_runs_on(learner, capsys):
    reveal("20.ring_bytes", 1.75, learner=learner)
    assert capsys.readouterr().out == "no guess; here is the answer: 1.75\n"


def test_the_first_look_is_what_counts(learner):
    said(learner, 7, sure=3)
    reveal("20.ring_bytes", 1.75, learner=learner)
    reveal("20.ring_bytes", 6.9, learner=learner)
    assert [(r["right"], r["points"], r["sure"]) for r in learner.records("reveal")] == [(1.75, 0, 3)]


@pytest.mark.parametrize("value", [torch.tensor(3), 3, torch.tensor([3])])
def test_a_count_is_right_or_off_by_one_and_may_be_a_tensor(learner, capsys, value):
    said(learner, 4)
    reveal("20.ring_bytes", value, learner=learner)
    assert "It is 3 n: off by one, 1 of 3 points" in capsys.readouterr().out


def test_what_a_clock_said_is_an_order_of_magnitude(learner, capsys):
    said(learner, 0.01)
    reveal("20.ring_bytes", 0.0123, order_of_magnitude=True, learner=learner)
    assert "the right order of magnitude, 3 of 3" in capsys.readouterr().out


def test_a_choice(learner, capsys):
    said(learner, "ring", options=["ring", "tree"])
    reveal("20.ring_bytes", "tree", learner=learner)
    assert "You said ring n, fairly sure. It is tree n: not it, 0 of 3 points" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"20.ring_bytes: none of the answers; got 'star'; expected ring \| tree"):
        reveal("20.ring_bytes", "star", learner=learner)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None, [1], True])
def test_an_answer_that_is_no_number_is_an_error_of_the_lab(learner, value):
    with pytest.raises(
        UserError, match=r"20\.ring_bytes: the answer is not a number; got .*; expected one finite number"
    ):
        reveal("20.ring_bytes", value, learner=learner)


def test_a_notebook_gets_the_same_words_with_a_chip(learner, displayed):
    said(learner, 7)
    reveal("20.ring_bytes", 1.75, why=WHY, usual="7 < 8", learner=learner)
    data = displayed[-1]["data"]
    assert "✘ far off" in data["text/html"] and "7 &lt; 8" in data["text/html"]
    assert data["text/html"].count("far off") == 1  # the chip says it
    assert data["text/plain"].startswith("You said 7 n, fairly sure. It is 1.75 n: far off, 0 of 3 points.")
    reveal("20.ring_bytes", 8, wrong=[7], learner=learner)
    assert "✘ the usual wrong answer" in displayed[-1]["data"]["text/html"]
