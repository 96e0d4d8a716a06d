"""The widget says and writes down what the plain call does, by keys alone, and leaves a twin in text."""

import sys

import pytest

from lt_core.teaching import predict, reveal
from lt_core.teaching.predict import Question, twin
from lt_core.teaching.predict_box import box

VIEW = "application/vnd.jupyter.widget-view+json"
NUMBER = Question("20.ring_bytes", "bytes each rank sends & gets, 8 ranks", "n")
CHOICE = Question("22.badge", "which badge?", "", ("≡", "≈", "≠"))


def parts(widget):
    """(field or choices, buttons, the line's text) of the widget."""
    _, row, buttons, line = widget.children
    return row.children[0], buttons.children, line


def test_a_field_its_unit_and_three_buttons(learner):
    field, buttons, line = parts(box(NUMBER, learner))
    assert field.value == "" and [b.description for b in buttons] == ["a hunch", "fairly sure", "would bet on it"]
    assert line.value == "20.ring_bytes: not said yet: an answer, then a click on how sure you are."


def test_pressing_writes_down_and_says_so(learner):
    field, buttons, line = parts(box(NUMBER, learner))
    assert field.continuous_update is False  # a change comes whole, and before the press that follows it
    field.value = "7/4"
    buttons[2].click()
    assert line.value.startswith('<div role="alert">20.ring_bytes: you said 1.75 n, would bet on it')
    assert [(r["guess"], r["sure"]) for r in learner.records("prediction")] == [(1.75, 3)]


@pytest.mark.parametrize(("typed", "says"), [("", "an answer first"), ("1,75", "not a number"), ("<b>", "&lt;b&gt;")])
def test_what_is_no_answer_is_said_and_not_written(learner, typed, says):
    field, buttons, line = parts(box(NUMBER, learner))
    field.value = typed
    buttons[0].click()
    assert says in line.value and learner.records("prediction") == []


def test_answers_to_choose_from(learner):
    choices, buttons, line = parts(box(CHOICE, learner))
    buttons[0].click()
    assert "an answer first" in line.value
    choices.value = "≈"
    buttons[1].click()
    assert "you said ≈, fairly sure" in line.value


def test_what_was_said_before_stands_in_the_field(learner):
    predict(NUMBER.name, NUMBER.words, unit="n", guess=7, learner=learner)
    field, _, line = parts(box(NUMBER, learner))
    assert field.value == "7" and "you said 7 n before" in line.value


def test_after_the_answer_a_press_changes_nothing(learner):
    predict(NUMBER.name, NUMBER.words, unit="n", guess=7, learner=learner)
    reveal(NUMBER.name, 1.75, learner=learner)
    field, buttons, line = parts(box(NUMBER, learner))
    field.value = "1.75"
    buttons[2].click()
    assert "what you said before, 7 n, stands" in line.value and len(learner.records("prediction")) == 1


def test_a_notebook_gets_one_display_with_a_twin_that_is_the_same_each_time(learner, displayed):
    for _ in range(2):
        predict(NUMBER.name, NUMBER.words, unit="n", learner=learner)
    first, second = (output["data"] for output in displayed)
    assert VIEW in first and first["text/plain"] == second["text/plain"] == twin(NUMBER, learner)


def test_as_plain_code_a_notebook_gets_no_widget(learner, displayed, capsys):
    predict(NUMBER.name, NUMBER.words, unit="n", guess=1.75, learner=learner)
    assert displayed == [] and "you said 1.75 n" in capsys.readouterr().out


def test_without_ipywidgets_the_twin_stands_alone_and_the_notebook_runs_on(learner, displayed, monkeypatch, capsys):
    """A lab stopped at its first question where widgets were absent."""
    monkeypatch.setitem(sys.modules, "ipywidgets", None)  # as if it were not installed
    predict(NUMBER.name, NUMBER.words, unit="n", learner=learner)
    assert displayed == [] and capsys.readouterr().out == f"{twin(NUMBER, learner)}\n"
