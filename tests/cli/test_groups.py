"""`ltlab ps` and `ltlab stop` tell and end what notebooks hold, and never one of several unasked."""

import os
import signal
import subprocess
import tempfile
import time

import pytest
from typer.testing import CliRunner

from lt_core.cli.main import app
from lt_core.comm import folders, host
from lt_core.comm import group as groups
from lt_core.comm.group import Cell, Group, Status

NOON = time.mktime((2026, 1, 2, 12, 0, 0, 0, 0, -1))
RING = Status("ring.ipynb", 4, "gloo", NOON, 11, 12, "/run/a")
TREE = Status("tree.ipynb", 2, "nccl", NOON, 21, 22, "/run/b")
OTHER = Status("another version of LT-Lab", 0, "unknown", NOON, 0, 0, "/run/c")


def called(*words):
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def held(monkeypatch):
    """The groups that are found; `stop_all` ends them."""
    living = []

    def stop_all():
        stopped, living[:] = list(living), []
        return stopped

    monkeypatch.setattr(groups, "find", lambda: list(living))
    monkeypatch.setattr(groups, "stop_all", stop_all)
    return living


@pytest.mark.parametrize("words", [("ps",), ("stop",), ("stop", "--all")])
def test_nothing_is_held(held, words):
    done = called(*words)
    assert (done.exit_code, done.output) == (0, "no notebook holds ranks\n")


def rows(done):
    return [line.split() for line in done.output.splitlines() if line.strip()]


def test_ps_has_a_line_a_group(held):
    held += [RING, TREE]
    head, *lines = rows(called("ps"))
    assert head == ["notebook", "ranks", "over", "since", "kernel"]
    assert lines == [
        ["ring.ipynb", "4", "gloo", "12:00:00", "11"], ["tree.ipynb", "2", "nccl", "12:00:00", "21"],
    ]  # fmt: skip
    assert held == [RING, TREE]


def test_what_another_version_holds_is_told_in_words_and_ended(held):
    held += [OTHER]
    _, row, words = called("ps").output.rstrip().splitlines()
    assert row.split() == ["another", "version", "of", "LT-Lab", "?", "?", "12:00:00", "?"]
    assert words == "This version cannot read what that one wrote in /run/c; ltlab stop ends it, too."
    assert called("stop").output == "stopped: ranks of another version of LT-Lab, in /run/c\n"


def test_stop_ends_the_only_one(held):
    held += [RING]
    assert called("stop").output == "stopped: 4 ranks over gloo of ring.ipynb\n" and held == []


def test_stop_ends_none_of_several(held):
    held += [RING, TREE]
    done = called("stop")
    assert done.exit_code == 1 and held == [RING, TREE]
    assert done.stderr == (
        "ltlab stop: 2 notebooks hold ranks; got ring.ipynb, tree.ipynb; expected one, or all of them; "
        "try: ltlab stop --all\n"
    )


def test_stop_all_ends_all(held):
    held += [RING, TREE]
    assert (
        called("stop", "--all").output
        == "stopped: 4 ranks over gloo of ring.ipynb\nstopped: 2 ranks over nccl of tree.ipynb\n"
    )
    assert held == []


def test_stop_ends_what_is_left_where_kernel_and_keeper_were_killed_at_once(monkeypatch):
    """Nobody holds the folder's lock any more: the group is none, and still its ranks are there."""
    with tempfile.TemporaryDirectory(prefix="lt-", dir="/tmp") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        folder = folders.make()
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        marked = {**os.environ, host.MARK: str(folder.path)}
        with subprocess.Popen(["sh", "-c", "echo up; read nothing"], env=marked, **pipes) as rank:
            assert rank.stdout.readline() == b"up\n"  # it has its environment a moment after it was started
            os.close(folder.lock)
            assert called("ps").output == "no notebook holds ranks\n" and rank.poll() is None
            assert called("stop").output == "no notebook holds ranks\n"
            assert rank.wait(10) == -signal.SIGKILL and not folder.path.exists()


@pytest.mark.processes
def test_a_real_group_is_told_and_ended(monkeypatch):
    with tempfile.TemporaryDirectory(prefix="lt-", dir="/tmp") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        group = Group(1, owner="ring.ipynb")
        try:
            group.run(Cell("pass"), print)
            (pid,) = group.status().pids
            assert rows(called("ps"))[1][:3] == ["ring.ipynb", "1", "gloo"]
            assert called("stop").output == "stopped: 1 rank over gloo of ring.ipynb\n"
            assert not host.alive(pid) and called("ps").output == "no notebook holds ranks\n"
        finally:
            group.stop()
        assert list(folders.root().iterdir()) == []
