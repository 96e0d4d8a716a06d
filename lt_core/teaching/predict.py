"""A prediction: a number with a unit, or one of several answers, written down before the run.

    predict("20.ring_bytes", "bytes each rank sends, 8 ranks", unit="n")             a field and three buttons
    predict("20.ring_bytes", "bytes each rank sends, 8 ranks", unit="n", guess=1.75, sure=2)     the same as code

What was said can be changed until `reveal` has shown the answer; then it stands.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from importlib.util import find_spec
from typing import NamedTuple

from lt_core.base.errors import UserError
from lt_core.base.records import JSON
from lt_core.teaching.learner import Learner
from lt_core.teaching.shown import number, say
from lt_core.views.show import in_notebook

SURE = ("a hunch", "fairly sure", "would bet on it")


class Question(NamedTuple):
    """What is asked: its name "LAB.name", the words, and the unit of the number or the answers to choose from."""

    name: str
    words: str
    unit: str = ""
    options: tuple[str, ...] = ()

    def value(self, answer: float | str) -> str:
        """An answer in words: `1.75 n`, `3 rank-seconds`, `1 rank-second`."""
        unit = re.sub(r"(?<=\w{3})s$", "", self.unit) if answer == 1 else self.unit  # "ms" is no plural
        return f"{number(answer)} {unit}".strip()


def predict(
    name: str,
    question: str,
    *,
    unit: str = "",
    options: Sequence[str] = (),
    guess: float | str | None = None,
    sure: int = 1,
    learner: Learner | None = None,
) -> None:
    """Ask for a prediction; `guess` (with `sure`: 1 a hunch, 2 fairly sure, 3 would bet on it) answers as plain code.

    name: such as "20.ring_bytes".  options: answers to choose from, in place of a number.  learner: whose file, if not
    the one in this folder. Errors: a name without its lab, a guess that is no number or none of the options.
    """
    file = learner or Learner()
    asked = Question(_name(name), question, unit, tuple(options))
    known: dict[str, JSON] = {"words": question, "unit": unit, "options": [*options]}
    if any(file.last("question", name).get(key) != value for key, value in known.items()):
        file.add("question", name=name, **known)
    if guess is not None:
        print(commit(asked, guess, sure, file))
    elif in_notebook() and find_spec("ipywidgets"):
        from lt_core.teaching.predict_box import show_box

        show_box(asked, file)
    else:
        say(twin(asked, file))


def commit(question: Question, guess: float | str, sure: int, learner: Learner) -> str:
    """Write a guess down, and say so in one line."""
    said, name = checked(question, guess), question.name
    if sure not in (1, 2, 3):
        raise UserError(f"{name}: how sure?", sure, "1 a hunch, 2 fairly sure, 3 would bet on it")
    first = learner.last("reveal", name)
    if first:
        return f"{name}: you have seen the answer; what you said before, {question.value(first['guess'])}, stands."  # type: ignore[arg-type]
    new: dict[str, JSON] = {"guess": said, "sure": sure}
    old = learner.last("prediction", name)
    failed = ""
    if {key: old.get(key) for key in new} != new:
        failed = learner.add("prediction", name=name, **new, at=time.strftime("%Y-%m-%d %H:%M:%S"))
    return f"{name}: you said {question.value(said)}, {SURE[sure - 1]}; {failed or f'kept in {learner.where}'}."


def checked(question: Question, guess: float | str) -> float | str:
    """The guess as what is written down. Errors: no number; none of the options."""
    if question.options:
        if str(guess) not in question.options:
            raise UserError(f"{question.name}: none of the answers", repr(guess), " | ".join(question.options))
        return str(guess)
    value = read_number(question.name, guess) if isinstance(guess, str) else guess
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UserError(f"{question.name}: not a number", repr(guess), "a number such as 1.75, 7/4 or 110,000")
    return value


def read_number(name: str, text: str) -> float:
    """The number in `1.75`, `7/4`, `110,000`, `1e9`. Errors: anything else, and a comma that could be a point."""
    top, slash, bottom = text.strip().partition("/")
    try:
        value = _plain(top) / (_plain(bottom) if slash else 1)
    except (ValueError, ZeroDivisionError):
        raise UserError(f"{name}: not a number", repr(text), "a number such as 1.75, 7/4 or 110,000") from None
    return int(value) if value == int(value) and abs(value) < 2**53 else value


def twin(question: Question, learner: Learner) -> str:
    """The question in text: what the widget asks, and how to answer without it."""
    kind = f"a number, in {question.unit}" if question.unit else "a number"
    lines = [f"Your prediction, {question.name}: {question.words} ({'choose one' if question.options else kind})"]
    lines += [f"  {n}. {option}" for n, option in enumerate(question.options, 1)]
    answer = repr(question.options[0]) if question.options else "NUMBER"
    lines.append(f"By code: add guess={answer}, sure=2 to the call (1 {SURE[0]}, 2 {SURE[1]}, 3 {SURE[2]}).")
    return "\n".join([*lines, f"It is kept in {learner.where} and shown to nobody; leaving it out is fine."])


def _plain(text: str) -> float:
    text = text.strip()
    if "," in text and not re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?", text):
        raise ValueError(text)  # 1,75 would become 175
    value = float(text.replace(",", ""))
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _name(name: str) -> str:
    if not re.fullmatch(r"\d\d\.\w+", name):
        raise UserError("a name needs its lab", repr(name), "such as '20.ring_bytes'")
    return name
