"""A copy is whole or not there, takes no name that is taken, and leaves nothing when it is stopped half-way."""

import os
import resource
import threading
from datetime import date

import pytest

from lt_core.cli import copies

DAY = date(2026, 11, 29)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source"
    path.write_bytes(b"four ranks, one sum")
    path.chmod(0o400)
    return path


def no_links(*_, **__):
    raise PermissionError(1, "Operation not permitted")


def test_a_free_name_gets_the_file_and_is_writable_whatever_its_source_is(source, tmp_path):
    assert copies.copy_new(source, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    assert (tmp_path / "copy").stat().st_mode & 0o200


@pytest.mark.parametrize("linked", [os.link, no_links])
def test_a_name_that_is_taken_stays_as_it_is(source, tmp_path, monkeypatch, linked):
    monkeypatch.setattr(os, "link", linked)
    (tmp_path / "copy").write_text("mine")
    assert not copies.copy_new(source, tmp_path / "copy")
    with pytest.raises(FileExistsError):
        copies.move(source, tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {"source", "copy"}


def test_a_link_that_leads_nowhere_is_a_name_that_is_taken(source, tmp_path):
    (tmp_path / "copy").symlink_to("nowhere")
    assert not copies.copy_new(source, tmp_path / "copy")
    assert os.readlink(tmp_path / "copy") == "nowhere"


@pytest.mark.parametrize("linked", [os.link, no_links])
def test_of_many_that_copy_at_once_one_does(source, tmp_path, monkeypatch, linked):
    monkeypatch.setattr(os, "link", linked)
    done, together = [], threading.Barrier(8)

    def copy():
        together.wait()
        done.append(copies.copy_new(source, tmp_path / "copy"))

    threads = [threading.Thread(target=copy) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [False] * 7 + [True]
    assert (tmp_path / "copy").read_bytes() == source.read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"source", "copy"}


def test_where_there_is_no_room_nothing_is_left(tmp_path):
    (tmp_path / "source").write_bytes(bytes(10_000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            copies.copy_new(tmp_path / "source", tmp_path / "copy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {path.name for path in tmp_path.iterdir()} == {"source"}


def test_an_interrupt_before_the_end_leaves_nothing(source, tmp_path, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        copies.copy_new(source, tmp_path / "copy")
    assert {path.name for path in tmp_path.iterdir()} == {"source"}


def test_a_move_that_fails_leaves_both_names_as_they_were(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", no_links)
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        copies.move(tmp_path / "folder", tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(FileNotFoundError):
        monkeypatch.undo()
        copies.move(tmp_path / "nothing", tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_what_is_moved_aside_three_times_a_day_is_there_three_times(tmp_path):
    path = tmp_path / "20_all_reduce.ipynb"
    for turn in "abc":
        path.write_text(turn)
        copies.aside(path, DAY)
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert kept == {
        "20_all_reduce.2026-11-29.ipynb": "a",
        "20_all_reduce.2026-11-29-2.ipynb": "b",
        "20_all_reduce.2026-11-29-3.ipynb": "c",
    }


def test_what_a_killed_copy_left_is_swept_and_one_at_work_is_not(tmp_path):
    for name in (".old.ipynb.1a2b.part", ".new.ipynb.3c4d.part", "old.ipynb"):
        (tmp_path / name).write_text("half")
    os.utime(tmp_path / ".old.ipynb.1a2b.part", (0, 0))
    os.utime(tmp_path / "old.ipynb", (0, 0))
    copies.sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {".new.ipynb.3c4d.part", "old.ipynb"}
