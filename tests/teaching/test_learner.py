"""What a learner says stands in one file of theirs, a line each, and nothing that can befall a file stops a lesson."""

import json
import os
import stat

import pytest

from lt_core.teaching import Learner


def test_nothing_was_said_before_anything_was_said(learner):
    assert learner.records("prediction") == [] and learner.last("prediction", "20.a") == {}
    assert not learner.path.exists()


def test_a_line_each_and_the_last_of_a_name_counts(learner):
    for guess in (7, 1.75):
        assert learner.add("prediction", name="20.a", guess=guess) == ""
    learner.add("hint", name="20.a", rung=1)
    assert [json.loads(line)["kind"] for line in learner.path.read_text().splitlines()] == ["prediction"] * 2 + ["hint"]
    assert learner.last("prediction", "20.a")["guess"] == 1.75
    assert [r["guess"] for r in learner.records("prediction")] == [7, 1.75]


@pytest.mark.parametrize("before", [None, 0o644])
def test_nobody_else_may_read_it(learner, before):
    if before:
        learner.path.touch()
        learner.path.chmod(before)
    mask = os.umask(0)
    try:
        learner.add("prediction", name="20.a", guess=1)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(learner.path.stat().st_mode) == 0o600


def test_it_stands_beside_the_notebook_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Learner().add("prediction", name="20.a", guess=1)
    assert [path.name for path in tmp_path.iterdir()] == [".lt_learner.jsonl"]
    assert Learner().where == ".lt_learner.jsonl beside this notebook"


def test_a_place_that_takes_no_file_is_said_and_raises_nothing(tmp_path):
    learner = Learner(tmp_path / "nowhere" / "mine.jsonl")
    assert learner.add("prediction", name="20.a", guess=1).endswith("mine.jsonl: No such file or directory")
    assert learner.records("prediction") == []


@pytest.mark.parametrize("line", ['{"kind": "predic', "[1, 2]", "\x00\xff"])
def test_a_damaged_line_is_passed_over_with_a_warning(learner, line):
    learner.add("prediction", name="20.a", guess=1)
    with learner.path.open("a") as file:
        file.write(line + "\n")
    learner.add("prediction", name="20.b", guess=2)
    with pytest.warns(UserWarning, match="line 2 of .*mine.jsonl cannot be read and is passed over"):
        assert [r["guess"] for r in learner.records("prediction")] == [1, 2]


def test_two_notebooks_at_once_lose_no_line(learner):
    other = Learner(learner.path)
    for k in range(20):
        learner.add("prediction", name="20.a", guess=k)
        other.add("prediction", name="20.b", guess=k)
    assert len(learner.records("prediction")) == 40
