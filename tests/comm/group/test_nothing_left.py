"""Clause 5: on every way out all processes end and the folder goes, also grandchildren that set themselves apart."""

import gc
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from lt_core.base.errors import RankError
from lt_core.comm import folders, host
from lt_core.comm.group import Group, find, start, stop_all
from lt_core.comm.group.members import Members
from lt_core.comm.launch import AGENT
from lt_core.comm.shared_memory import names
from tests.comm.group.conftest import Seen, run

pytestmark = pytest.mark.processes
ROOT = Path(__file__).parents[3]
DEEP = (  # a child, and a grandchild in a session of its own whose parent has ended; both deaf to SIGTERM
    "import signal, subprocess, os\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "child = subprocess.Popen(['sleep', '300'])\n"
    "deep = subprocess.run(['sh', '-c', 'trap \"\" TERM; setsid sleep 300 >/dev/null 2>&1 & echo $!'], stdout=-1)\n"
    "(child.pid, int(deep.stdout))"
)


def gone(pids, within_s: float = 10.0) -> bool:
    until_s = time.monotonic() + within_s
    watched = [fd for pid in pids if (fd := host.watch(pid)) is not None]
    for fd in watched:
        select.select([fd], [], [], max(0.0, until_s - time.monotonic()))
        os.close(fd)
    return not any(host.alive(pid) for pid in pids)


def everybody(group: Group) -> tuple[list[int], Path]:
    """All processes of a group, with what its ranks have started; and its folder."""
    seen = run(group, DEEP)
    status = group.status()
    deep = [pid for value in seen.values.values() for pid in eval(value)]
    below = host.descendants(status.keeper)
    assert {*status.pids, *deep} <= set(below)
    return [status.keeper, *below], Path(status.folder)


@pytest.fixture(scope="module")
def group(own_root):
    """A group that each test ends, and the next one's first cell starts again."""
    held = Group(2, backend="gloo", owner="ending.ipynb", alone=False)
    yield held
    held.stop()


def open_files() -> set[str]:
    fds = os.listdir("/proc/self/fd")
    return {os.readlink(f"/proc/self/fd/{fd}") for fd in fds if os.path.exists(f"/proc/self/fd/{fd}")}


def test_restart_ends_the_old_ones(group):
    pids, folder = everybody(group)
    group.restart()
    assert gone(pids) and not folder.exists() and run(group, "rank").values == {0: "0", 1: "1"}


def test_the_tree_is_as_it_is_drawn(group):
    run(group, "1")
    status = group.status()
    keeper = psutil.Process(status.keeper)
    (torchrun,) = keeper.children()
    assert keeper.ppid() == os.getpid() and os.getsid(keeper.pid) == keeper.pid
    assert str(AGENT) in torchrun.cmdline() and "--max-restarts=0" in torchrun.cmdline()
    assert {child.pid for child in torchrun.children()} == set(status.pids)


def test_a_fork_of_the_kernel_ends_nothing(group):
    """Its exit runs what the kernel's own would."""
    run(group, "kept = 1")
    pid = os.fork()
    if pid == 0:
        try:
            group.stop()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert run(group, "kept").values == {0: "1", 1: "1"}


class Lines(list):
    """Lines as they come; `heard`: once there is one."""

    def __init__(self):
        super().__init__()
        self.heard = threading.Event()

    def append(self, line):
        super().append(line)
        self.heard.set()


def test_stop_ends_deaf_ranks_and_their_grandchildren(group):
    before, threads = open_files(), {thread.name for thread in threading.enumerate()}
    pids, folder = everybody(group)
    seen, on = list[Seen](), Lines()
    text = "import time\nprint('on')\ntime.sleep(60)"
    cell = threading.Thread(target=lambda: seen.append(run(group, text, lines=on)))
    cell.start()
    assert on.heard.wait(10)
    group.stop()  # from another thread, while a cell runs
    cell.join(10)
    assert str(seen.pop().error) == "the group is no more: it was ended from outside"
    gc.collect()  # with its traceback goes what its frames had open
    assert gone(pids) and not folder.exists()
    assert host.marked(folder) == []
    assert not {path for path in open_files() - before if str(folder) in path}
    assert {thread.name for thread in threading.enumerate()} <= threads
    group.stop()  # again


def test_stop_ends_a_start_under_way(group, own_root, monkeypatch):
    """It waited for the start, for two minutes if need be."""
    group.stop()
    before, begun, meet = open_files(), threading.Event(), start._meet
    monkeypatch.setattr(start, "_meet", lambda *args: begun.set() or meet(*args))
    monkeypatch.setattr(Members, "welcome", lambda *args: None)  # as long as one waits, no rank is there
    seen = list[Seen]()
    cell = threading.Thread(target=lambda: seen.append(run(group, "rank")))
    cell.start()
    assert begun.wait(20)
    (folder,) = (Path(one.folder) for one in find() if one.owner == "ending.ipynb")
    group.stop()  # from another thread
    cell.join(10)
    assert isinstance(seen[0].error, RuntimeError) and not group.alive
    assert str(seen.pop().error) == "the group was stopped while it started"
    gc.collect()
    assert host.marked(folder) == [] and not folder.exists() and open_files() <= before


def test_a_stop_that_comes_when_the_ranks_stand_already_ends_them(monkeypatch):
    """Too late for the start, and too early to see what that has brought up."""
    closed, tick = [], threading.Event()
    members = SimpleNamespace(close=lambda: closed.append(True))

    def start(plan, timeout_s, interrupted, stopped):
        stopper.start()
        while not stopped():
            tick.wait(0.01)
        return members

    monkeypatch.setattr("lt_core.comm.group.group.start", start)
    monkeypatch.setattr("lt_core.comm.group.group.Standing", lambda members: SimpleNamespace(members=members))
    late = Group(2, backend="gloo", alone=False)
    stopper = threading.Thread(target=late.stop)
    with pytest.raises(RuntimeError, match="the group was stopped while it started"):
        late.start()
    stopper.join(10)
    assert closed == [True] and late.status().pids == ()


@pytest.mark.parametrize(
    ("how", "said", "watched"),
    [
        ("os._exit(0)", "exit code 0", True),  # a success for torchrun, which would wait for the others for ever
        ("ctypes.string_at(0)", "signal 11 (SIGSEGV)", False),
    ],
)
def test_a_rank_that_dies_ends_the_group(group, how, said, watched, monkeypatch):
    """Where the system can be asked to tell of its end, and where it is looked for."""
    if not watched:
        monkeypatch.setattr(host, "watch", lambda pid: None)
    pids, folder = everybody(group)
    monkeypatch.undo()
    text = f"import ctypes, os, signal\nif rank == 1:\n    os.write(2, b'last words\\n')\n    {how}\ncomm.barrier()"
    seen = run(group, text)
    assert isinstance(seen.error, RankError) and (seen.error.rank, seen.error.kind) == (1, "died")
    how_it_ended, _, last_line = seen.error.message.partition("; its last line: ")
    # torchrun, its parent, may have taken its exit before us, and does not write of a success
    assert how_it_ended in (said, *(["nobody knows how"] if said == "exit code 0" else [])) and seen.seconds < 5
    assert last_line
    assert ((1,), "last words") in seen.texts("err")
    assert gone(pids) and not folder.exists() and not group.alive


def test_a_rank_that_died_between_cells_is_noticed(group):
    pids, folder = everybody(group)
    first = group.status().pids[0]
    os.kill(first, signal.SIGKILL)
    assert gone([first])
    seen = run(group, "rank")
    assert seen.values == {0: "0", 1: "1"} and gone(pids) and not folder.exists()
    assert seen.lines[0].text.startswith("a new group starts, without the variables: rank 0 died: signal 9 (SIGKILL)")


def test_with_its_keeper_everything_ends(group):
    pids, folder = everybody(group)
    os.kill(pids[0], signal.SIGKILL)
    assert gone(pids[1:])
    seen = run(group, "rank")
    assert gone(pids) and not folder.exists() and seen.values == {0: "0", 1: "1"}
    assert seen.lines[0].text == "a new group starts, without the variables: it was ended from outside"


def test_a_group_whose_folder_a_cell_removes_makes_room_for_a_new_one(group):
    pids, folder = everybody(group)
    run(group, f"import shutil\nshutil.rmtree({str(folder)!r}, ignore_errors=True)")
    seen = run(group, "rank")
    assert seen.lines[0].text == f"a new group starts, without the variables: its folder {folder} was removed"
    assert seen.values == {0: "0", 1: "1"} and gone(pids)


def test_a_cell_under_way_when_its_keeper_ends_is_told_so(group):
    run(group, "1")
    keeper, on = group.status().keeper, Lines()
    ender = threading.Thread(target=lambda: on.heard.wait(10) and os.kill(keeper, signal.SIGTERM))
    ender.start()
    seen = run(group, "import time\nprint('on')\ntime.sleep(60)", lines=on)
    ender.join()
    assert isinstance(seen.error, RuntimeError)
    assert str(seen.error) == "the group is no more: it was ended from outside" and seen.seconds < 5


KERNEL = """
import signal, sys
from lt_core.comm.group import Cell, Group

group = Group(2, backend="gloo", owner="script", alone=False)
deep = group.run(Cell(sys.argv[1]), print).values
deep = [pid for value in deep.values() for pid in eval(value)]
print([group.status().keeper, *group.status().pids, *deep], flush=True)
print(group.status().folder, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def kernel(own_root):
    """A process with a group of its own, all ids of its processes, and their folder."""
    script = subprocess.Popen(
        [sys.executable, "-c", KERNEL, DEEP], env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    pids, folder = eval(script.stdout.readline()), Path(script.stdout.readline().strip())
    yield script, pids, folder
    host.end(lambda: [script.pid, *pids])
    script.wait()
    script.stdin.close()
    script.stdout.close()


def test_a_kernel_that_is_killed_leaves_nothing(kernel):
    script, pids, folder = kernel
    script.kill()
    assert gone([script.pid, *pids]) and not folder.exists()


def test_kernel_and_keeper_killed_at_once_leave_what_the_next_start_sweeps(kernel, own_root):
    script, pids, folder = kernel
    os.kill(script.pid, signal.SIGSTOP)  # so that it does not see its keeper end
    os.kill(pids[0], signal.SIGKILL)
    os.kill(script.pid, signal.SIGKILL)
    assert gone([script.pid, pids[0]]) and folder.exists()
    assert str(folder) not in [status.folder for status in find()]  # its lock is free: it is dead
    folders.sweep()
    assert gone(pids) and not folder.exists()


def test_stop_all_of_another_process_ends_it(kernel):
    script, pids, folder = kernel
    assert str(folder) in [status.folder for status in find()]
    stopped = stop_all()
    assert str(folder) in [status.folder for status in stopped]
    assert gone(pids) and not folder.exists() and find() == []
    assert script.poll() is None  # the kernel itself is left alone, and can still end well
    script.stdin.close()
    assert script.wait(20) == 0


def named(pids):
    """The files in shared memory that say that they are of one of these processes; others come and go meanwhile."""
    place, found = names.folder(), []
    for path in place.glob(f"{names.PREFIX}*") if place else []:
        with suppress(FileNotFoundError), path.open("rb") as file:
            found += [path for pid in pids if f" {pid} ".encode() in file.readline()]
    return found


def test_nothing_lies_about_in_the_temporary_folder(own_root, tmp_path, monkeypatch):
    """torchrun's logs, the communicator's pages: all of it lies in the group's folder."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)  # so that it is asked for anew
    gc.collect()
    held = open_files()
    group = Group(2, backend="gloo", owner="tidy.ipynb", alone=False)
    seen = run(group, "import tempfile\ncomm.barrier()\ntempfile.gettempdir()")
    assert seen.values == dict.fromkeys((0, 1), repr(str(tmp_path)))
    pids = group.status().pids
    run(group, "1/0")
    run(group, "comm.subset([1, 0]).barrier()")
    group.stop()
    gc.collect()
    assert open_files() <= held  # sockets and pipes, too
    assert list(tmp_path.iterdir()) == [] == named(pids)
    assert list(own_root.iterdir()) == [] or all(folders.lives(place) for place in own_root.iterdir())
