"""Clause 12: one group a user; an idle one ends itself; no more ranks than memory holds; others can find and end it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lt_core.base.errors import UserError
from lt_core.comm import folders, host, limits
from lt_core.comm.group import Group, Status, find, found, room, stop_all
from lt_core.comm.group.start import refuse_second
from tests.comm.group.conftest import run

ROOT = Path(__file__).parents[3]
processes = pytest.mark.processes


def status(kernel: int, since_s: float, folder: str = "/f", owner: str = "b.ipynb") -> Status:
    return Status(owner, 4, "gloo", since_s, kernel, 0, folder)


def test_a_second_notebook_is_told_who_holds_ranks(monkeypatch):
    older = status(kernel=1, since_s=10.0, owner="ring.ipynb")
    monkeypatch.setattr(found, "find", lambda: [older, status(kernel=2, since_s=20.0)])
    with pytest.raises(UserError) as caught:
        refuse_second(status(kernel=2, since_s=20.0))
    assert str(caught.value) == (
        "ring.ipynb holds 4 ranks already; got a second group, for b.ipynb; expected one group a user; "
        "try: %torchrun stop --all, which ends them"
    )
    refuse_second(older)  # of two that start at once, the older one stays
    monkeypatch.setattr(found, "find", lambda: [older])
    refuse_second(status(kernel=1, since_s=30.0))  # a fresh group beside the warm one, in the same notebook


@processes
def test_two_notebooks_at_once(group, cell):
    """The second one is refused by name, and starts nothing; the first one works on."""
    cell("kept = 1")
    script = (
        "from lt_core.comm.group import Cell, Group\n"
        "try: Group(2, backend='gloo', owner='second.ipynb').run(Cell('1'), print)\n"
        "except ValueError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert done.stdout.startswith("tests.ipynb holds 2 ranks already; got a second group, for second.ipynb; "), (
        done.stderr
    )
    assert cell("kept").values == {0: "1", 1: "1"}
    assert [one.owner for one in find()] == ["tests.ipynb"]


@processes
def test_others_find_it_and_may_end_it(group, cell):
    cell("kept = 1")
    mine = group.status()
    (other,) = (one for one in find() if one.folder == mine.folder)
    assert other == mine._replace(since_s=other.since_s)
    assert abs(other.since_s - time.time()) < 600
    assert mine.folder in [one.folder for one in stop_all()]
    assert find() == [] and not any(host.alive(pid) for pid in (mine.keeper, *mine.pids))
    seen = cell("'kept' in dir()")
    assert seen.values[0] == "False"
    assert seen.lines[0].text == "a new group starts, without the variables: it was ended from outside"


def test_a_group_may_be_idle_for_half_an_hour():
    assert Group(2, backend="gloo")._idle_s == 30 * 60


@processes
def test_an_idle_group_ends_itself_and_the_next_cell_says_so(own_root, monkeypatch):
    idle = Group(2, backend="gloo", idle_s=0.6, alone=False)
    run(idle, "kept = 1")
    folder = Path(idle.status().folder)
    assert run(idle, "import time\ntime.sleep(1.0)\nkept").values == {0: "1", 1: "1"}  # a cell under way is no idleness
    tick, until_s = threading.Event(), time.monotonic() + 20
    while folder.exists() and time.monotonic() < until_s:
        tick.wait(0.05)
    assert not idle.alive and not folder.exists()
    monkeypatch.setattr(limits, "free_bytes", lambda: 0)  # a start takes seconds, and this one needs none
    seen = run(idle, "kept")
    assert seen.lines[0].text == "a new group starts, without the variables: it was idle for 0.01 minutes"
    assert isinstance(seen.error, UserError)


def test_a_dead_group_is_not_found_whatever_its_file_says(own_root):
    folder = folders.make()
    found.write(status(os.getpid(), time.time(), str(folder.path)))
    assert [one.folder for one in find()].count(str(folder.path)) == 1
    os.close(folder.lock)
    assert str(folder.path) not in [one.folder for one in find()]
    assert folder.path in folders.sweep() and not folder.path.exists()


def test_a_group_that_has_only_been_announced_is_stopped_once_it_has_a_keeper(own_root, monkeypatch):
    """Its keeper's id was 0 until then, and who signals 0 signals itself and all that was started with it."""
    signalled = []
    monkeypatch.setattr(os, "kill", lambda pid, sign: signalled.append(pid))
    folder = folders.make()
    announced = status(os.getpid(), time.time(), str(folder.path))
    found.write(announced)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as keeper:
        begun = threading.Timer(0.05, found.write, [announced._replace(keeper=keeper.pid)])
        begun.start()
        threading.Timer(0.2, keeper.stdin.close).start()
        assert found.stop(announced) and signalled == [keeper.pid]
        begun.join()
    os.close(folder.lock)
    assert not found.stop(announced) and signalled == [keeper.pid]  # and one that never got one is gone
    folders.sweep()


MINE = status(os.getpid(), 2.0)._asdict()


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({**MINE, "colour": "red"}),
        json.dumps({name: MINE[name] for name in ("owner", "size")}),
        json.dumps({**MINE, "since_s": "noon", "pids": []}),
        json.dumps({**MINE, "pids": None}),
        "[1, 2]",
        "half of it",
        "\udcff",
    ],
)
def test_a_group_of_another_version_is_unknown_and_can_be_ended(own_root, text):
    """It ended every start, and `ltlab ps`, with a TypeError."""
    folder = folders.make()
    (folder.path / found.FILE).write_bytes(text.encode(errors="surrogateescape"))
    (other,) = (one for one in find() if one.folder == str(folder.path))
    assert other.size == 0 and other.ranks == f"ranks of another version of LT-Lab, in {folder.path}"
    assert abs(other.since_s - time.time()) < 60
    marked, pipes = {**os.environ, host.MARK: other.folder}, {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(["sh", "-c", "echo up; read nothing"], env=marked, **pipes) as rank:
        assert rank.stdout.readline() == b"up\n"  # a process has its environment a moment after it was started
        refuse_second(status(os.getpid(), time.time() + 60, "/later"))
        assert found.stop(other) and rank.wait(10) == -signal.SIGKILL
    assert not found.stop(other)
    os.close(folder.lock)
    folders.sweep()


def test_a_launch_is_no_group(own_root):
    folder = folders.make()
    assert str(folder.path) not in [one.folder for one in find()]
    os.close(folder.lock)
    folders.sweep()


def test_what_others_read_is_written_whole(own_root, monkeypatch):
    """They look at any moment: it gets its name once all of it stands."""
    folder = folders.make()
    rename, seen = Path.rename, []

    def noted(part, to):
        seen.append((json.loads(part.read_text())["owner"], to.exists()))
        return rename(part, to)

    monkeypatch.setattr(Path, "rename", noted)
    found.write(status(1, 2.0, str(folder.path)))
    assert seen == [("b.ipynb", False)] and sorted(os.listdir(folder.path)) == [found.FILE, "lock"]
    os.close(folder.lock)
    folders.sweep()


@pytest.mark.parametrize(
    ("size", "free", "text"),
    [
        (
            8, 1 << 30,
            "8 ranks do not fit the memory that is free; got 1.07 GB free; expected about 234 MB for each rank; "
            "try: -n 4",
        ),
        (
            1, 1 << 20,
            "1 ranks do not fit the memory that is free; got 1.05 MB free; expected about 234 MB for each rank; "
            "try: ending other programs",
        ),
    ],
)  # fmt: skip
def test_more_ranks_than_memory_holds_are_refused(size, free, text):
    with pytest.raises(UserError) as caught:
        room.check(size, free)
    assert str(caught.value) == text
    room.check(4, 1 << 30)


def test_they_are_refused_before_anything_starts(monkeypatch, own_root):
    monkeypatch.setattr(limits, "free_bytes", lambda: 300 << 20)
    for size in (2, 10**15):  # of so many not even the numbers fit
        seen = run(Group(size, backend="gloo", alone=False), "1")
        assert isinstance(seen.error, UserError) and str(seen.error).endswith("; try: -n 1")
