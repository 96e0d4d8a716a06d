"""Which notebook is whose: by folder, by name, however a course's platform writes it; the rest is named and why."""

import os

import pytest

from lt_core.teaching.grading import submissions
from lt_core.teaching.grading.submissions import found


def whose(folder, *paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("{}")
    taken, passed_over = found(folder, ["00", "20"])
    return [(one.learner, one.lab) for one in taken], [one.why for one in passed_over]


@pytest.mark.parametrize(
    ("path", "learner"),
    [
        ("alice/20_all_reduce.ipynb", "alice"),
        ("alice_20_all_reduce.ipynb", "alice"),
        ("alice-20_all_reduce.ipynb", "alice"),
        ("Alice Liddell 20_all_reduce.ipynb", "Alice Liddell"),
        ("week 3/alice_20_all_reduce.ipynb", "alice"),
        ("alice/my_labs/20_all_reduce.ipynb", "alice"),
        ("student_12_20_all_reduce.ipynb", "student_12"),
        ("student_20_20_all_reduce.ipynb", "student_20"),
        ("Élodie_20_all_reduce (2).ipynb", "Élodie"),
    ],
)
def test_a_name_or_a_folder_says_who(tmp_path, path, learner):
    assert whose(tmp_path, path) == ([(learner, "20")], [])


def test_a_folder_of_one_learner_is_hers(tmp_path):
    assert whose(tmp_path / "alice", "20_all_reduce.ipynb", "00_start_here.ipynb")[0] == [
        ("alice", "00"), ("alice", "20"),
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["notes", "21_overlap", "2020_x", "120_x", "20_all_reduce-Copy1", "20_x.2026-11-29"])
def test_what_is_no_lab_with_exercises_is_passed_over(tmp_path, name):
    assert whose(tmp_path, f"alice/{name}.ipynb") == (
        [], ["its name is not that of a lab with exercises (00, 20)"],
    )  # fmt: skip


@pytest.mark.parametrize("folder", ["alice/solutions", "alice/.ipynb_checkpoints", ".trash"])
def test_solutions_and_hidden_folders_are_nobody_s_work(tmp_path, folder):
    assert whose(tmp_path, f"{folder}/20_all_reduce.ipynb") == ([], [])


def test_links_pipes_and_giants_are_not_opened(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe_20_x.ipynb")
    (tmp_path / "link_20_x.ipynb").symlink_to("/etc/passwd")
    (tmp_path / "folder_20_x.ipynb").mkdir()
    monkeypatch.setattr(submissions, "LARGEST_BYTES", 1)
    taken, why = whose(tmp_path, "giant_20_x.ipynb")
    assert taken == [] and sorted(why) == ["it has more than 1 bytes", *["it is no file"] * 3]
