"""The widget of a prediction: one field (or the answers to choose from), three buttons, one line of what happened.

    bytes each rank sends, 8 ranks
    [ 1.75      ] n    [ a hunch ] [ fairly sure ] [ would bet on it ]
    20.ring_bytes: you said 1.75 n, fairly sure; kept in ...

Tab walks through it, Enter or Space presses. Its twin in text stands in the same output.
"""

from __future__ import annotations

import html
from functools import partial
from typing import Any

from lt_core.base.errors import UserError
from lt_core.teaching.learner import Learner
from lt_core.teaching.predict import SURE, Question, commit, twin


def show_box(question: Question, learner: Learner) -> None:
    """Display the widget and its twin as one output."""
    from IPython.display import display

    shown = dict(box(question, learner)._repr_mimebundle_())
    display({**shown, "text/plain": twin(question, learner)}, raw=True)  # type: ignore[no-untyped-call]


def box(question: Question, learner: Learner) -> Any:
    """The widget: children are question, answer, buttons, line. Pressing a button writes the prediction down."""
    import ipywidgets as widgets

    said = learner.last("prediction", question.name).get("guess", "")
    answer = _choices(question, said) if question.options else _field(question, said)
    line = widgets.HTML()
    buttons = [widgets.Button(description=word, tooltip=f"write it down: {word}") for word in SURE]
    for sure, button in enumerate(buttons, 1):
        button.on_click(partial(_press, question, learner, answer, sure, line))
    head = widgets.HTML(f"<b>{html.escape(question.words)}</b>")
    how = "not said yet: an answer, then a click on how sure you are"  # Enter alone writes nothing down
    before = how if said == "" else f"you said {question.value(said)} before"  # type: ignore[arg-type]
    line.value = html.escape(f"{question.name}: {before}.")
    row = [answer, widgets.HTML(html.escape(question.unit))] if question.unit else [answer]
    wrap = widgets.Layout(flex_flow="row wrap", align_items="center")
    return widgets.VBox([head, widgets.HBox(row), widgets.HBox(buttons, layout=wrap), line])


def _field(question: Question, said: object) -> Any:
    import ipywidgets as widgets

    return widgets.Text(
        str(said), continuous_update=False,  # else a press could overtake what was typed while the kernel was busy
        placeholder="a number, such as 1.75 or 7/4", description="", layout=widgets.Layout(width="16em"),
        tooltip=f"your answer in {question.unit or 'numbers'}",
    )  # fmt: skip


def _choices(question: Question, said: object) -> Any:
    import ipywidgets as widgets

    chosen = said if said in question.options else None
    layout = widgets.Layout(width="max-content")
    return widgets.RadioButtons(options=list(question.options), value=chosen, layout=layout)


def _press(question: Question, learner: Learner, answer: Any, sure: int, line: Any, _: Any) -> None:
    if answer.value in (None, ""):
        line.value = _line(f"{question.name}: an answer first, then how sure you are.")
        return
    try:
        line.value = _line(commit(question, answer.value, sure, learner))
    except UserError as error:
        line.value = _line(str(error))


def _line(text: str) -> str:
    """What a press did, spoken by screen readers: they read out an alert that is put in, but not a status."""
    return f'<div role="alert">{html.escape(text)}</div>'
