"""`ltlab grade` writes a row an exercise, whatever the notebooks hold, and nothing but the table on its output."""

import csv
import io
import json

import pytest
from typer.testing import CliRunner

from lt_core.cli import grade
from lt_core.cli.main import app
from lt_core.teaching.checks import EXERCISES
from lt_core.teaching.grading import graded
from lt_core.teaching.grading.graded import Grade

NAMES_20 = [name for name in EXERCISES if name.startswith("20.")]
WITH_EXERCISES = ", ".join(sorted({name[:2] for name in EXERCISES}))


def called(*words):
    return CliRunner().invoke(app, ["grade", *map(str, words)], prog_name="ltlab")


def rows(done):
    return list(csv.DictReader(io.StringIO(done.stdout)))


@pytest.fixture
def folder(tmp_path):
    for path in ("alice/20_all_reduce.ipynb", "bob_20_all_reduce.ipynb", "bob_00_start_here.ipynb", "notes.ipynb"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(json.dumps({"cells": []}))
    return tmp_path


@pytest.fixture
def asked(monkeypatch):
    """Each grading that was asked for; all of them pass, after a fashion."""
    calls = []

    def graded_(*arguments):
        calls.append(arguments)
        return Grade(10, 11, "not passed", 1.25, '=HYPERLINK("x"), "quoted"')

    monkeypatch.setattr(graded, "grade", graded_)
    return calls


def test_a_row_an_exercise_by_learner_and_lab(folder, asked):
    done = called(folder)
    assert done.exit_code == 0 and list(rows(done)[0]) == list(grade.COLUMNS)
    assert [(row["learner"], row["lab"], row["exercise"]) for row in rows(done)] == [
        *(("alice", "20", name) for name in NAMES_20),
        ("bob", "00", "00.my_sum"),
        ("bob", "00", "00.who_was_late"),
        ("bob", "00", "00.what_to_mend"),
        *(("bob", "20", name) for name in NAMES_20),
    ]
    first = rows(done)[0]
    assert (first["passed"], first["of"], first["verdict"], first["seconds"]) == ("10", "11", "not passed", "1.2")


def test_no_cell_is_a_formula_and_none_is_endless(folder, asked):
    assert rows(called(folder))[0]["remark"] == '\'=HYPERLINK("x"), "quoted"'
    assert [grade.plain(cell) for cell in ("@a", "-1", "+1", "a-1", "")] == ["'@a", "'-1", "'+1", "a-1", ""]
    assert len(grade.plain("x" * 1000)) == grade.LONGEST


def test_who_watches_sees_progress_and_what_was_passed_over(folder, asked):
    lines = called(folder, "--seed", 7).stderr.splitlines()
    assert lines[:3] == [
        f"passed over: {folder}/notes.ipynb: its name is not that of a lab with exercises ({WITH_EXERCISES})",
        "3 notebooks; --seed 7 draws the same numbers again",
        "[1/3] alice, 20.reduce_scatter",
    ]


def test_everybody_gets_the_same_numbers_and_nobody_the_grader_s_secrets(folder, asked, monkeypatch):
    monkeypatch.setenv("GRADES_PASSWORD", "swordfish")
    called(folder)
    assert len({seed for _, _, seed, *_ in asked}) == 1 and 0 <= asked[0][2] < 10**6
    assert "PATH" in asked[0][-1] and "GRADES_PASSWORD" not in asked[0][-1]


def test_options(folder, asked):
    done = called(folder, "--lab", "00", "--seed", 7, "--quick", "--limit", 3)
    assert done.exit_code == 0 and "20_all_reduce" not in done.stderr
    (path, name, seed, real, limits, _), *_ = asked
    assert (path, name, seed, real) == (folder / "bob_00_start_here.ipynb", "00.my_sum", 7, False)
    assert limits.seconds == 3


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["nowhere"], 1, "ltlab grade: there is no folder nowhere; expected a folder of notebooks"),
        (["."], 1, "ltlab grade: no notebook to grade in .; expected NAME/00_slug.ipynb or NAME_00_slug.ipynb"),
        ([".", "--lab", "99"], 2, f"lab '99' has no exercises; those that have: {WITH_EXERCISES}"),
        ([".", "--limit", "0"], 2, "--limit 0 leaves no time; expected more than 0 seconds; try: --limit 90"),
        ([], 2, "Missing argument"),
    ],
)
def test_what_cannot_be_graded_is_said(tmp_path, monkeypatch, asked, words, code, says):
    monkeypatch.chdir(tmp_path)
    done = called(*words)
    assert done.exit_code == code and says in " ".join(done.output.split()) and asked == []
