"""A command below the keeper ends with all that it has started, whoever is ended first."""

import os
import shutil
import signal
import subprocess
import sys

import psutil
import pytest

from lt_core.comm import folders, host, keeper, kept
from tests.comm.test_launch import gone

pytestmark = pytest.mark.processes


@pytest.fixture
def running():
    """The keeper's process, the folder, and the ids of what runs below it."""
    with folders.make() as folder, open(folder.path / "log", "wb") as log:
        process = kept.start(["sh", "-c", "sleep 300 & wait"], os.environ, folder, log)
        pids = []
        while len(pids) < 2 and process.poll() is None:
            pids = host.descendants(process.pid)
        yield process, folder.path, pids
        kept.end(process, folder.path)
        process.stdout.close()


@pytest.mark.parametrize("keeper_first", [False, True])
def test_nothing_is_left(running, keeper_first):
    process, folder, pids = running
    assert len(pids) == 2 and psutil.Process(pids[0]).environ()[host.MARK] == str(folder)
    if keeper_first:
        os.kill(process.pid, signal.SIGKILL)
    kept.end(process, folder)
    assert not any(map(host.alive, [process.pid, *pids])) and host.marked(folder) == []


def test_it_says_how_the_command_ended():
    with folders.make() as folder, open(folder.path / "log", "wb") as log:
        process = kept.start(["sh", "-c", "exit 3"], os.environ, folder, log)
        assert process.stdout.read() == b"ended 3\n"
        kept.end(process, folder.path)
        process.stdout.close()
        assert folder.path.exists()  # who has started it may still want to read there


LAUNCHING = """
import os, subprocess, sys
command = [sys.executable, "-S", "-E", sys.argv[1], str(os.getpid()), "sh", "-c", "sleep 300 & wait"]
kept = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
held = [kept.stdin.fileno()] if sys.argv[2] == "held" else []  # a fork has the pipe, too
others = subprocess.Popen(["sleep", "300"], stdout=subprocess.DEVNULL, pass_fds=held) if held else None
print(kept.pid, others.pid if others else 0, flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("way", ["a descriptor of it", "a pipe"])
def test_it_ends_with_whoever_started_it_by_each_of_two_ways(tmp_path, way):
    """Where the system cannot tell of a process's end, the pipe does; where a fork still holds that, the system."""
    for module in (keeper, host):
        shutil.copy(module.__file__, tmp_path)
    if way == "a pipe":
        with open(tmp_path / "host.py", "a") as code:
            code.write("\n\ndef watch(pid):\n    return None\n")
    (tmp_path / "folder").mkdir()
    command = [sys.executable, "-c", LAUNCHING, tmp_path / "keeper.py", "held" if way != "a pipe" else "alone"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**os.environ, host.MARK: str(tmp_path / "folder")}, **pipes) as launching:
        pid, other = map(int, launching.stdout.readline().split())
        below = []
        while len(below) < 2 and host.alive(pid):
            below = host.descendants(pid)
        try:
            os.kill(pid, signal.SIGINT)  # Ctrl-C is for who started it
            assert len(below) == 2 and all(map(host.alive, [pid, *below]))
            launching.kill()
            assert gone(pid) and not any(map(host.alive, below)) and not (tmp_path / "folder").exists()
            assert not other or host.alive(other)
        finally:
            host.end(lambda: [pid for pid in (pid, *below, other) if pid])
