"""A ladder of four hints an exercise, one rung a call; the fifth call says where the solution is.

The ladders are data, a file a lab in `hints/`, so that a person or an AI tutor reads the same ones by the same rule: no
rung before its turn. Which rungs were seen stands in the learner's file.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import NamedTuple

from lt_core.base.errors import UserError
from lt_core.teaching.learner import Learner
from lt_core.teaching.shown import near, row, say


class Ladder(NamedTuple):
    """The rungs of one exercise, from a question to the one line most people miss, and where its solution is."""

    rungs: tuple[str, ...]
    solution: str


def hint(name: str, *, rung: int = 0, learner: Learner | None = None) -> None:
    """Show the next hint for an exercise; `rung` shows one again. Errors: no such ladder, a rung before its turn."""
    file, steps = learner or Learner(), ladder(name)
    seen = int(str(file.last("hint", name).get("rung", 0)))
    if rung and not 1 <= rung <= seen:
        raise UserError(f"{name}: hint {rung} has its turn later", f"{seen} seen so far", attempt=f"hint({name!r})")
    number = rung or seen + 1
    if number > len(steps.rungs):
        text = f"All {len(steps.rungs)} hints of {name} are seen. The solution is in {steps.solution}."
        say(text, row(near("→", "solution"), text))
        return
    failed = "" if rung else file.add("hint", name=name, rung=number)
    heading, text = f"hint {number} of {len(steps.rungs)}", steps.rungs[number - 1]
    say("\n".join(filter(None, [f"{heading}: {text}", failed])), row(near("→", heading), f"{text} {failed}".strip()))


def ladder(name: str) -> Ladder:
    """The ladder of an exercise, such as "20.reduce_scatter". Errors: `UserError` naming those there are."""
    ladders = all_ladders()
    if name not in ladders:
        raise UserError("no hints of this name", repr(name), ", ".join(sorted(ladders)))
    return ladders[name]


@cache
def all_ladders() -> dict[str, Ladder]:
    """Every ladder by its exercise's name."""
    found: dict[str, Ladder] = {}
    for file in resources.files("lt_core.teaching").joinpath("hints").iterdir():
        if file.name.endswith(".toml"):
            lab = tomllib.loads(file.read_text(encoding="utf-8"))
            exercises = {key: value for key, value in lab.items() if isinstance(value, dict)}
            found |= {f"{file.name[:2]}.{k}": Ladder(tuple(v["rungs"]), lab["solution"]) for k, v in exercises.items()}
    return found
