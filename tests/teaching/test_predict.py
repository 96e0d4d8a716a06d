"""A prediction is written down before the answer is seen, can be changed until then, and stands afterwards."""

import pytest

from lt_core.base import UserError
from lt_core.teaching import guess_of, predict, reveal
from lt_core.teaching.predict import SURE, read_number

ASKED = ("20.ring_bytes", "bytes each rank sends, 8 ranks")


def test_as_plain_code_it_is_one_line(learner, capsys):
    predict(*ASKED, unit="n", guess=1.75, sure=2, learner=learner)
    said = f"20.ring_bytes: you said 1.75 n, fairly sure; kept in {learner.path}.\n"
    assert capsys.readouterr().out == said
    (kept,) = learner.records("prediction")
    assert (kept["name"], kept["guess"], kept["sure"]) == ("20.ring_bytes", 1.75, 2)


def test_without_a_guess_it_asks_and_writes_down_none(learner, capsys):
    predict(*ASKED, unit="n", learner=learner)
    shown = capsys.readouterr().out
    assert shown.startswith("Your prediction, 20.ring_bytes: bytes each rank sends, 8 ranks (a number, in n)\n")
    assert "guess=NUMBER, sure=2" in shown and all(word in shown for word in SURE) and str(learner.path) in shown
    assert guess_of("20.ring_bytes", learner=learner) is None


def test_a_choice_is_asked_with_its_answers_and_taken_by_its_words(learner, capsys):
    predict("22.badge", "which badge?", options=["≡", "≈", "≠"], learner=learner)
    assert "  1. ≡\n  2. ≈\n  3. ≠\n" in capsys.readouterr().out
    predict("22.badge", "which badge?", options=["≡", "≈", "≠"], guess="≠", learner=learner)
    assert "you said ≠, a hunch" in capsys.readouterr().out
    with pytest.raises(UserError, match=r"22.badge: none of the answers; got 'x'; expected ≡ \| ≈ \| ≠"):
        predict("22.badge", "which badge?", options=["≡", "≈", "≠"], guess="x", learner=learner)


@pytest.mark.parametrize(
    ("guess", "unit", "said"),
    [(1, "rank-seconds", "1 rank-second"), (3, "rank-seconds", "3 rank-seconds"), (1, "ms", "1 ms"), (1, "n", "1 n")],
)
def test_one_is_no_plural(learner, capsys, guess, unit, said):
    predict(*ASKED, unit=unit, guess=guess, learner=learner)
    assert f"you said {said}, a hunch" in capsys.readouterr().out


def test_another_guess_replaces_it_and_the_same_again_is_not_written_twice(learner):
    for guess in (7, 1.5, 1.5):
        predict(*ASKED, unit="n", guess=guess, learner=learner)
    assert [r["guess"] for r in learner.records("prediction")] == [7, 1.5]
    assert guess_of("20.ring_bytes", learner=learner) == 1.5
    assert guess_of("20.ring_bytes", times=8192, learner=learner) == 12288
    assert len(learner.records("question")) == 1


def test_once_the_answer_was_seen_it_stands(learner, capsys):
    predict(*ASKED, unit="n", guess=7, sure=3, learner=learner)
    reveal("20.ring_bytes", 1.75, learner=learner)
    capsys.readouterr()
    predict(*ASKED, unit="n", guess=1.75, learner=learner)
    assert "you have seen the answer; what you said before, 7 n, stands" in capsys.readouterr().out
    assert guess_of("20.ring_bytes", learner=learner) == 7


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.75", 1.75), (" 7/4 ", 1.75), ("110,000", 110_000), ("1,751,715,840", 1_751_715_840), ("1e9", 10**9),
        ("-0.5", -0.5), ("3", 3),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(text, value):
    assert read_number("20.a", text) == value


@pytest.mark.parametrize("text", ["1,75", "a lot", "", "7/0", "nan", "inf", "1,2,3", "2*7"])
def test_what_is_no_number_is_refused_in_words(text):
    with pytest.raises(UserError, match=r"20\.a: not a number; got .*; expected a number such as 1.75, 7/4 or 110,000"):
        read_number("20.a", text)


@pytest.mark.parametrize("guess", [float("nan"), float("inf"), True, [1], None.__class__])
def test_a_guess_that_is_no_number_is_refused(learner, guess):
    with pytest.raises(UserError, match=r"20\.ring_bytes: not a number"):
        predict(*ASKED, guess=guess, learner=learner)


def test_how_sure_is_one_to_three(learner):
    with pytest.raises(
        UserError, match=r"20\.ring_bytes: how sure\?; got 4; expected 1 a hunch, 2 fairly sure, 3 would"
    ):
        predict(*ASKED, guess=1, sure=4, learner=learner)


@pytest.mark.parametrize("name", ["ring_bytes", "2.ring", "20.", "20 ring"])
def test_a_name_begins_with_its_lab(name, learner):
    with pytest.raises(UserError, match=r"a name needs its lab; got .*; expected such as '20.ring_bytes'"):
        predict(name, "how many?", learner=learner)


def test_where_nothing_can_be_written_the_lesson_goes_on(tmp_path, capsys):
    from lt_core.teaching import Learner

    predict(*ASKED, guess=1, learner=Learner(tmp_path / "nowhere" / "mine.jsonl"))
    assert "you said 1, a hunch; not written down: " in capsys.readouterr().out
