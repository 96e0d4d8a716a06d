"""A command below the keeper ends with all that it has started, whoever is ended first."""

import os
import signal

import psutil
import pytest

from lt_core.comm import folders, host, kept

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
