"""A learner's work survives every update of the labs; what changed is said in a line; a reset loses nothing."""

import json
from datetime import date

import pytest
from typer import BadParameter

from lt_core.base.errors import UserError
from lt_core.cli import my_labs

DAY = date(2026, 11, 29)
LEARNERS = {"00_start_here.ipynb", "20_all_reduce.ipynb", "tour.ipynb"}


def book(source, words="a lab", **digests):
    metadata = {"lt_lab": {"source": source, **digests}} if source else {}
    return json.dumps({"cells": [words], "metadata": metadata, "nbformat": 4})


@pytest.fixture
def labs(tmp_path):
    folder = tmp_path / "labs"
    (folder / "solutions").mkdir(parents=True)
    (folder / "README.md").write_text("The labs")
    for name in LEARNERS:
        (folder / name).write_text(book("v1"))
        (folder / "solutions" / name).write_text(book("v1", "solved"))
    return folder


@pytest.fixture
def mine(tmp_path):
    return tmp_path / "my_labs"


def prepared(labs, mine):
    return list(my_labs.prepare(labs, mine, DAY))


def names(folder):
    return {path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith(".")}


def test_everything_is_copied_once_and_said_once(labs, mine):
    assert prepared(labs, mine) == [f"new in {mine}: 00_start_here.ipynb, 20_all_reduce.ipynb, tour.ipynb"]
    assert names(mine) == {*LEARNERS, "README.md"} and names(mine / "solutions") == LEARNERS
    assert prepared(labs, mine) == []


def test_solutions_and_the_table_of_labs_are_to_read(labs, mine):
    prepared(labs, mine)
    writable = {path.name for path in mine.rglob("*.*") if path.is_file() and path.stat().st_mode & 0o222}
    assert writable == {*LEARNERS, my_labs.RECORD}


def test_a_learner_s_work_survives_and_a_line_says_what_changed(labs, mine):
    prepared(labs, mine)
    (mine / "20_all_reduce.ipynb").write_text(book("v1", "my ring"))
    (labs / "20_all_reduce.ipynb").write_text(book("v2"))
    assert prepared(labs, mine) == prepared(labs, mine) == [
        "20_all_reduce.ipynb has changed since you got it; yours stays as it is. "
        "ltlab lab --reset 20 moves it aside and gives the lab anew"
    ]  # fmt: skip
    assert "my ring" in (mine / "20_all_reduce.ipynb").read_text()


def test_what_changed_for_teachers_alone_is_no_change(labs, mine):
    """Their cells and the solutions are in a lab's source, and in no learner's copy."""
    (labs / "20_all_reduce.ipynb").write_text(book("v1", cells="c1"))
    prepared(labs, mine)
    (labs / "20_all_reduce.ipynb").write_text(book("v2", cells="c1"))
    assert prepared(labs, mine) == []
    (labs / "20_all_reduce.ipynb").write_text(book("v3", cells="c2"))
    assert [line.split(" since")[0] for line in prepared(labs, mine)] == ["20_all_reduce.ipynb has changed"]


def test_a_copy_from_before_is_told_by_its_source(labs, mine):
    prepared(labs, mine)
    (labs / "20_all_reduce.ipynb").write_text(book("v1", cells="c1"))
    assert prepared(labs, mine) == []


def test_a_new_lab_comes_and_one_that_went_stays(labs, mine):
    prepared(labs, mine)
    (labs / "20_all_reduce.ipynb").rename(labs / "21_overlap.ipynb")
    assert prepared(labs, mine) == [
        f"new in {mine}: 21_overlap.ipynb",
        "20_all_reduce.ipynb is no longer one of the labs; your copy stays",
    ]
    assert names(mine) >= {"20_all_reduce.ipynb", "21_overlap.ipynb"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"metadata": 3}', "{}", "\udcff"])
def test_a_copy_that_is_no_notebook_any_more_is_told(labs, mine, text):
    prepared(labs, mine)
    (mine / "20_all_reduce.ipynb").write_bytes(text.encode(errors="surrogateescape"))
    assert prepared(labs, mine) == [
        "20_all_reduce.ipynb cannot be read as a notebook. ltlab lab --reset 20 moves it aside and gives the lab anew"
    ]


@pytest.mark.parametrize(
    "name", ["20_all_reduce-Copy1.ipynb", "20_all_reduce.2026-11-29.ipynb", "notes.ipynb", "30_mine.ipynb"]
)
def test_a_learner_s_own_notebooks_are_nobody_s_business(labs, mine, name):
    prepared(labs, mine)
    (mine / name).write_text(book("" if name == "30_mine.ipynb" else "v0"))
    assert prepared(labs, mine) == []


def test_solutions_follow_the_labs_and_an_edited_one_is_kept(labs, mine):
    prepared(labs, mine)
    edited = mine / "solutions" / "20_all_reduce.ipynb"
    edited.unlink()
    edited.write_text("my notes")
    for name in LEARNERS:
        (labs / "solutions" / name).write_text(book("v2", "solved"))
    assert prepared(labs, mine) == [
        "you had edited solutions/20_all_reduce.ipynb: that is now in 20_all_reduce.2026-11-29.ipynb, "
        "and the new one in its place"
    ]
    assert (mine / "solutions" / "20_all_reduce.2026-11-29.ipynb").read_text() == "my notes"
    assert all((mine / "solutions" / name).read_text() == book("v2", "solved") for name in LEARNERS)
    assert prepared(labs, mine) == []


def test_without_its_record_whatever_differs_is_kept(labs, mine):
    prepared(labs, mine)
    (mine / my_labs.RECORD).write_text("[")
    (labs / "README.md").write_text("More labs")
    (line,) = prepared(labs, mine)
    assert line.startswith("you had edited README.md") and (mine / "README.2026-11-29.md").read_text() == "The labs"


@pytest.mark.parametrize("name", ["20", "20_all_reduce", "20_all_reduce.ipynb"])
def test_a_reset_gives_the_lab_and_keeps_what_was_there(labs, mine, name):
    prepared(labs, mine)
    (mine / "20_all_reduce.ipynb").write_text("my ring")
    said = my_labs.reset(my_labs.find(labs, name), mine, DAY)
    kept = mine / "20_all_reduce.2026-11-29.ipynb"
    assert said == (
        f"20_all_reduce.ipynb is fresh; what you had is in {kept}. Open in JupyterLab? File > Reload Notebook from Disk"
    )
    assert kept.read_text() == "my ring" and (mine / "20_all_reduce.ipynb").read_text() == book("v1")


def test_a_reset_of_what_is_not_there_copies_it(labs, mine):
    assert my_labs.reset(my_labs.find(labs, "tour"), mine, DAY) == "tour.ipynb is fresh"
    assert names(mine) == {"tour.ipynb"}


def test_a_reset_moves_even_a_link_that_leads_nowhere(labs, mine):
    mine.mkdir()
    (mine / "20_all_reduce.ipynb").symlink_to("nowhere")
    my_labs.reset(my_labs.find(labs, "20"), mine, DAY)
    assert (mine / "20_all_reduce.ipynb").read_text() == book("v1") and not (mine / "20_all_reduce.ipynb").is_symlink()


def test_lab_0_is_lab_00_and_there_is_no_lab_99(labs):
    assert my_labs.find(labs, "0").name == "00_start_here.ipynb"
    with pytest.raises(BadParameter, match="no lab '99'; there are: 00_start_here, 20_all_reduce, tour"):
        my_labs.find(labs, "99")


@pytest.mark.parametrize("taken", ["my_labs", "my_labs/solutions"])
def test_a_file_where_the_folder_should_be(labs, mine, tmp_path, taken):
    (tmp_path / taken).parent.mkdir(exist_ok=True)
    (tmp_path / taken).write_text("")
    with pytest.raises(UserError) as told:
        prepared(labs, mine)
    assert str(told.value) == (
        f"{tmp_path / taken} is a file; expected a folder for your labs; try: move it away, or --folder DIR"
    )
