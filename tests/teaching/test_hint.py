"""One rung a call, in order, the same ladder for people and for programs; the fifth call names the solution."""

import re
from pathlib import Path

import pytest

from lt_core.base import UserError
from lt_core.teaching import hint
from lt_core.teaching.checks import EXERCISES
from lt_core.teaching.hint import all_ladders, ladder

LABS = Path(__file__).parents[2] / "labs" / "src"


def test_four_rungs_then_where_the_solution_is(learner, capsys):
    steps = ladder("20.reduce_scatter")
    for number, rung in enumerate(steps.rungs, 1):
        hint("20.reduce_scatter", learner=learner)
        assert capsys.readouterr().out == f"hint {number} of 4: {rung}\n"
    for _ in range(2):
        hint("20.reduce_scatter", learner=learner)
        assert "The solution is in solutions/20_all_reduce.ipynb." in capsys.readouterr().out
    assert [r["rung"] for r in learner.records("hint")] == [1, 2, 3, 4]


def test_a_rung_can_be_seen_again_but_not_before_its_turn(learner, capsys):
    for _ in range(2):
        hint("20.all_gather", learner=learner)
    capsys.readouterr()
    hint("20.all_gather", rung=1, learner=learner)
    assert capsys.readouterr().out.startswith("hint 1 of 4: ")
    for early in (3, 4, 5, -1):
        with pytest.raises(UserError, match=f"hint {early} has its turn later; got 2 seen so far; try: hint"):
            hint("20.all_gather", rung=early, learner=learner)


def test_each_ladder_has_its_own_place(learner, capsys):
    hint("20.reduce_scatter", learner=learner)
    hint("20.all_gather", learner=learner)
    assert capsys.readouterr().out.count("hint 1 of 4") == 2


def test_a_notebook_gets_a_chip(learner, displayed):
    hint("00.my_sum", learner=learner)
    assert "→ hint 1 of 4" in displayed[0]["data"]["text/html"]


@pytest.mark.parametrize("name", sorted(EXERCISES))
def test_every_exercise_has_a_ladder_and_none_gives_the_code(name):
    rungs, solution = ladder(name)
    assert len(rungs) == 4 and rungs[0].endswith("?") and solution.startswith(f"solutions/{name[:2]}_")
    assert not any(word in rung for rung in rungs for word in ("def ", "exchange(", "return "))


HEADINGS = [
    (name, heading)
    for name in sorted(EXERCISES)
    for rung in ladder(name).rungs
    for heading in re.findall(r"\*([A-Z][^*]+)\*", rung)
]


@pytest.mark.parametrize(("name", "heading"), HEADINGS)
def test_what_a_hint_calls_by_its_heading_is_in_the_lab(name, heading):
    (source,) = LABS.glob(f"{name[:2]}_*.py")
    assert re.search(f'^# ## {re.escape(heading)}$|"{re.escape(heading)}"', source.read_text(), re.M)


def test_no_ladder_is_without_its_exercise():
    assert set(all_ladders()) == set(EXERCISES)


def test_a_name_without_a_ladder(learner):
    with pytest.raises(UserError, match=r"no hints of this name; got '20.x'; expected 00.my_sum, "):
        hint("20.x", learner=learner)
