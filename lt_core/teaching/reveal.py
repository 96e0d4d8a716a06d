"""The answer, from the run: what was said beside it, why it is so, and the usual wrong answer with its thought.

reveal("20.ring_bytes", sent_bytes / whole_bytes, why="2 (p - 1) / p = 1.75", usual='7: "all must hear it"', wrong=[7])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from lt_core.base.errors import UserError
from lt_core.teaching import score
from lt_core.teaching.learner import Learner
from lt_core.teaching.predict import SURE, Question
from lt_core.teaching.shown import Chip, bad, good, near, paragraphs, row, say, undecided

CHIPS: tuple[Callable[[str, str], Chip], ...] = (bad, near, good, good)
WORDS = ("far off", "within a factor of two", "within a quarter", "right")
EXACT = ("not it", "off by one", "", "right")
USUAL, AT = "the usual wrong answer", 1.005  # whoever is that near to it, as a ratio, has given it
DECADE = ("far off", "within a decade", "", "the right order of magnitude")


def reveal(
    name: str,
    value: Any,
    *,
    why: str = "",
    usual: str = "",
    wrong: Sequence[float] = (),
    order_of_magnitude: bool = False,
    learner: Learner | None = None,
) -> None:
    """Show the right answer, `value`, which the run gave, beside what was predicted under this name.

    why: the derivation, one or two lines.  usual: the usual wrong answer and the thought that leads to it.  wrong: the
    numbers in it; who says one has no points, however near to the right one it is.  order_of_magnitude: for what a
    clock said. Nothing predicted is fine. Errors: a value that is no finite number where a number was asked, or none of
    the answers.
    """
    file = learner or Learner()
    question = _question(name, file)
    right = _right(question, value)
    after = [f"Why: {why}"] * bool(why) + [f"The usual wrong answer: {usual}"] * bool(usual)
    said = file.last("prediction", name)
    if "guess" not in said:
        answer = f"here is the answer: {question.value(right)}"
        say("\n".join([f"no guess; {answer}", *after]), row(undecided("–", "no guess"), answer) + paragraphs(after))
        return
    guess, sure = said["guess"], int(str(said.get("sure", 1)))
    points, verdict = _judged(guess, right, wrong, order_of_magnitude)
    first = f"You said {question.value(guess)}, {SURE[sure - 1]}. It is {question.value(right)}"  # type: ignore[arg-type]
    if not file.last("reveal", name):
        file.add("reveal", name=name, guess=guess, sure=sure, right=right, points=points)
    chip, earned = CHIPS[points]("✔" if points > 1 else "✘", verdict), f"{points} of {score.MOST} points."
    say("\n".join([f"{first}: {verdict}, {earned}", *after]), row(chip, f"{first}. {earned}") + paragraphs(after))


def guess_of(name: str, times: float = 1.0, learner: Learner | None = None) -> float | None:
    """The number predicted under this name, for the next figure: `with_guess(figure, guess_of(name))`.

    times: what one of its units is on the figure's axis.  None where no number was predicted.
    """
    guess = (learner or Learner()).last("prediction", name).get("guess")
    return guess * times if isinstance(guess, int | float) else None


def _question(name: str, learner: Learner) -> Question:
    known = learner.last("question", name)
    options = known.get("options") or []
    assert isinstance(options, list)
    return Question(name, str(known.get("words", "")), str(known.get("unit", "")), tuple(map(str, options)))


def _right(question: Question, value: Any) -> float | str:
    plain = value.item() if hasattr(value, "item") else value  # a tensor or a numpy number
    if question.options or isinstance(plain, str):
        if question.options and str(plain) not in question.options:
            raise UserError(f"{question.name}: none of the answers", repr(plain), " | ".join(question.options))
        return str(plain)
    if isinstance(plain, bool) or not isinstance(plain, int | float) or not math.isfinite(plain):
        raise UserError(f"{question.name}: the answer is not a number", repr(plain), "one finite number from the run")
    return plain


def _judged(guess: Any, right: float | str, wrong: Sequence[float], order_of_magnitude: bool) -> tuple[int, str]:
    """Points, and what they are for."""
    if isinstance(right, str) or isinstance(guess, str):
        points = score.of_choice(str(guess), str(right))
    else:
        points = score.of_number(guess, right, order_of_magnitude)
        if points < score.MOST and any(guess == one or score.ratio(guess, one) <= AT for one in wrong):
            return 0, USUAL
    return points, _words(right, order_of_magnitude)[points]


def _words(right: float | str, order_of_magnitude: bool) -> tuple[str, ...]:
    if order_of_magnitude and not isinstance(right, str):
        return DECADE
    return EXACT if isinstance(right, str) or score.is_count(right) else WORDS
