"""`%torchrun status`, `restart` and `stop` speak of this notebook's ranks, and of those of others where asked."""

import os
import time

import pytest

from lt_core.comm.group import Status
from lt_core.magics import commands

NOON = time.mktime((2026, 1, 2, 12, 0, 0, 0, 0, -1))
MINE = Status("ring.ipynb", 4, "gloo", NOON, os.getpid(), 11, "/run/a", True, (12, 13, 14, 15))
OTHER = Status("tree.ipynb", 1, "nccl", NOON, 1, 21, "/run/b")


@pytest.fixture
def user(monkeypatch):
    """The groups of this user that live; `stop_all` ends them."""
    living = [MINE, OTHER]

    def stop_all():
        stopped, living[:] = [one for one in living if one.kernel != os.getpid()], []
        return stopped

    monkeypatch.setattr(commands, "find", lambda: living)
    monkeypatch.setattr(commands, "stop_all", stop_all)
    return living


def held(notebook, groups):
    groups.status = lambda self: MINE._replace(alive=self.alive)
    notebook.run("%%torchrun -n 4\npass")
    return groups.made[0]


def printed(notebook, capsys, line):
    capsys.readouterr()
    notebook.run(line)
    return capsys.readouterr().out.splitlines()


def test_status_of_a_notebook_without_ranks(notebook, user, capsys):
    assert printed(notebook, capsys, "%torchrun status") == [
        "this notebook holds no ranks",
        "elsewhere: 1 rank over nccl of tree.ipynb, since 12:00:00",
    ]


def test_status_of_a_notebook_with_ranks(notebook, groups, user, capsys):
    held(notebook, groups)
    assert printed(notebook, capsys, "%torchrun status")[0] == (
        "here: 4 ranks over gloo of ring.ipynb, since 12:00:00, processes 12, 13, 14, 15"
    )


def test_status_of_ranks_that_have_ended(notebook, groups, user, capsys):
    held(notebook, groups).alive = False
    assert printed(notebook, capsys, "%torchrun status")[0] == "this notebook holds no ranks"


def test_restart(notebook, groups, capsys):
    group = held(notebook, groups)
    assert printed(notebook, capsys, "%torchrun restart") == ["4 new ranks over gloo, without variables"]
    assert group.log == ["restart"]


def test_there_is_nothing_to_restart(notebook):
    with pytest.raises(ValueError, match="this notebook holds no ranks; try: %%torchrun -n 4"):
        notebook.run("%torchrun restart")


def test_stop(notebook, groups, capsys):
    group = held(notebook, groups)
    assert printed(notebook, capsys, "%torchrun stop") == ["stopped"] and group.log == ["stop"]
    assert printed(notebook, capsys, "%torchrun stop") == ["this notebook holds no ranks"]


def test_stop_all(notebook, groups, user, capsys):
    group = held(notebook, groups)
    assert printed(notebook, capsys, "%torchrun stop --all") == [
        "stopped: 4 ranks over gloo of ring.ipynb, since 12:00:00, processes 12, 13, 14, 15",
        "stopped: 1 rank over nccl of tree.ipynb, since 12:00:00",
    ]
    assert group.log == ["stop"] and user == []
    assert printed(notebook, capsys, "%torchrun stop --all") == ["there were no ranks"]


@pytest.mark.parametrize("cell", ["%torchrun", "%torchrun -n 4", "%%torchrun status\npass"])
def test_a_command_stands_alone_and_a_cell_has_none(notebook, groups, cell):
    with pytest.raises(ValueError, match="%torchrun takes a command, %%torchrun a cell below it"):
        notebook.run(cell)
    assert groups.made == []
