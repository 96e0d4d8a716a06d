"""Clause 2: ready means that ranks have computed together, and nothing listens beyond the loopback."""

import errno
import gc
import os
import re
import resource
import socket
import stat
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from lt_core.base.errors import Deadline, UserError
from lt_core.comm import folders, host, limits, rendezvous
from lt_core.comm.group import Group
from lt_core.comm.group.members import Members
from lt_core.comm.group.world import World
from lt_core.comm.groups import GLOO_THREADS
from tests.comm.group.conftest import run

pytestmark = pytest.mark.processes


def everyone(group: Group) -> list[psutil.Process]:
    keeper = psutil.Process(group.status().keeper)
    return [keeper, *keeper.children(recursive=True)]


def test_sockets_that_listen(group, cell):
    """One of gloo's for each rank and process group, on the loopback; the group's own lies in its folder."""
    cell("import torch.distributed as dist\nown = dist.new_group([0, 1])\npair = comm.subset([1, 0])\ncomm.barrier()")
    folder = group.status().folder
    kernel = psutil.Process()
    before = {c.laddr for c in kernel.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    for process in everyone(group):
        listening = [c.laddr for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN]
        assert {address.ip for address in listening} <= {"127.0.0.1"}
        assert len(listening) == (3 if process.pid in group.status().pids else 0)
    assert {c.laddr for c in kernel.net_connections("inet") if c.status == psutil.CONN_LISTEN} == before
    mine = [c.laddr for c in kernel.net_connections("unix") if folder in str(c.laddr)]
    assert set(mine) == {f"{folder}/socket"} and len(os.fsencode(mine[0])) < 104
    cell("del own, pair")


def test_junk_that_any_user_may_send_to_gloos_port_does_no_harm(group, cell):
    """It is the one port that others of this machine can reach: it is deaf to garbage, to silence, to HTTP."""
    cell("kept, x = rank, torch.ones(100_000)\ncomm.all_reduce(x)")
    pids = group.status().pids
    ports = [c.laddr for pid in pids for c in psutil.Process(pid).net_connections("inet") if c.status == "LISTEN"]
    assert len(ports) >= 2
    with ExitStack() as strangers:
        for junk in (b"", b"GET / HTTP/1.0\r\n\r\n", b"\0" * 4096, b"\xff" * 4096):
            for port in ports:
                stranger = strangers.enter_context(socket.create_connection(port, timeout=5))
                stranger.sendall(junk)
        seen = cell("comm.all_reduce(x)\npair = comm.subset([1, 0])\npair.all_reduce(x)\nkept, x.unique().tolist()")
    assert seen.values == {rank: f"({rank}, [8.0])" for rank in (0, 1)} and seen.lines == []
    assert cell("comm.all_reduce(x)\nx[0].item()").values == dict.fromkeys((0, 1), "16.0")
    assert group.status().pids == pids
    cell("del pair")


def test_ranks_share_the_cores_and_meet_on_the_loopback(cell):
    threads, interface = max(1, limits.cores() // 2), host.loopback()
    names = ("OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME", "MASTER_PORT", "TORCHELASTIC_MAX_RESTARTS")
    seen = cell(f"import os\n[os.environ[name] for name in {names}]")
    assert eval(seen.values[0]) == [str(threads), interface, "1", "0"]  # port 1: nobody listens there


@pytest.mark.skipif(not host.LINUX, reason="no such threads")
def test_gloos_threads_stand_back_in_the_users_groups_too(cell):
    cell("import torch.distributed as dist\nown = dist.new_group([0, 1])")
    text = "import os, pathlib\nthreads = pathlib.Path('/proc/self/task').glob('*/comm')\n"
    text += f"spinners = [int(path.parent.name) for path in threads if path.read_text() == '{GLOO_THREADS[0]}\\n']\n"
    seen = cell(f"{text}len(spinners) > 1, {{os.sched_getscheduler(thread) for thread in spinners}}")
    assert seen.values == dict.fromkeys((0, 1), str((True, {os.SCHED_BATCH})))
    cell("del own")


def test_folder_and_key_are_the_users_alone(group, cell):
    cell("comm.barrier()")
    folder = Path(group.status().folder)
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    for path in folder.rglob("*"):
        assert path.stat().st_uid == os.getuid()
        if path.name == "key" or stat.S_ISFIFO(path.stat().st_mode) or path.name.startswith("page"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert (folder / "log").is_dir()  # else torchrun would leave one in the temporary folder for each start


def test_each_generation_meets_in_files_of_its_own(group, cell):
    """One file that all share only grows, and one full disk would spoil it for good."""
    cell("comm.barrier()")
    folder = Path(group.status().folder)
    (first,) = folder.glob("generation.*")
    cell("1 / 0")
    cell("comm.barrier()")
    (second,) = folder.glob("generation.*")
    assert int(second.name.partition(".")[2]) == int(first.name.partition(".")[2]) + 1
    assert all((second / name).exists() for name in ("meet.world", "pages.all"))


class Wrong:
    """A communicator whose all-reduce gives the wrong sum."""

    rank, size, device = 0, 2, "cpu"

    def all_reduce(self, x):
        x += 1


def test_a_first_all_reduce_that_is_wrong_is_no_start():
    with pytest.raises(RuntimeError, match=r"the first all-reduce of 2 ranks gave 2\.0"):
        World._prove(None, Wrong())


def test_the_proof_is_not_the_users_traffic(group, cell):
    cell("1 / 0")  # after which a communicator is made, and proved
    assert cell("comm.traffic.bytes, comm.traffic.messages").values == {0: "(0, 0)", 1: "(0, 0)"}


def test_who_does_not_come_is_named(own_root):
    late = Group(2, backend="gloo", alone=False)
    with pytest.raises(Deadline, match=r"ranks \[0, 1\] were not ready after 0\.01 s"):
        late.start(timeout_s=0.01)
    assert not late.alive and late.status().pids == ()


def test_a_start_that_fails_gives_torchruns_own_words(own_root, monkeypatch, tmp_path):
    monkeypatch.setattr("lt_core.comm.group.start.RANK", tmp_path / "missing.py")
    broken = Group(2, backend="gloo", alone=False)
    with pytest.raises(RuntimeError, match=r"the group did not start: (?s:.)*missing\.py"):
        broken.start()
    assert not broken.alive


def test_a_start_that_cannot_begin_leaves_no_folder(own_root, monkeypatch):
    """It stayed, and its lock with it, so that nobody could sweep it while this process lived."""

    def no_more(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("lt_core.comm.group.members.Tree", no_more)
    before = set(folders.root().iterdir())
    with pytest.raises(OSError, match="Too many open files"):
        Group(2, backend="gloo", alone=False).start()
    assert set(own_root.iterdir()) <= before


@contextmanager
def descriptors(below):
    """Only those below this number are to be had."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (below, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_without_descriptors_it_gives_back_those_it_got(own_root):
    """They stayed open; and zmq, where it found none, ended the notebook's whole process."""
    gc.collect()  # what is open in things that tests before this one have dropped
    before, refused = os.listdir("/proc/self/fd"), 0
    for room in range(500):  # one more each time, until there are enough
        folder = folders.make()
        try:
            with descriptors(folder.lock + 1 + room):
                members = Members(folder, 2)
        except OSError as error:
            assert error.errno == errno.EMFILE
            with folder:
                refused += 1
        else:
            members.close()
            break
    assert refused > 20 and os.listdir("/proc/self/fd") == before


def test_a_full_folder_is_named(own_root, monkeypatch):
    monkeypatch.setattr(folders, "ALWAYS_BYTES", 1 << 60)
    seen = run(Group(2, backend="gloo", alone=False), "1")
    assert isinstance(seen.error, UserError)
    assert re.match(rf"the folder {own_root} is full; got .* free; expected ", str(seen.error))


def test_a_folder_that_was_removed_is_no_place_to_begin(own_root, tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    error = run(Group(2, backend="gloo", alone=False), "1").error
    assert str(error) == "ranks begin in the folder of their notebook, which is gone; try: os.chdir('/')"


def test_a_folder_that_fills_up_is_named_and_nothing_is_lost(own_root, cell, monkeypatch):
    cell("kept = 1")
    cell("1 / 0")  # so that the ranks meet anew, which takes files
    with monkeypatch.context() as full:
        full.setattr(folders, "ALWAYS_BYTES", 1 << 60)
        for _ in range(2):
            assert str(cell("kept").error).startswith(f"the folder {own_root} is full; got ")
    assert cell("comm.barrier()\nkept").values == {0: "1", 1: "1"}


def test_a_rank_whose_disk_is_full_says_so_and_lives_on(cell):
    """What a rank maps is allocated first: else the system would end it when it writes there."""
    text = (
        "import os\nkept, allocate, fails = 1, os.posix_fallocate, [1, 2]\n"
        "def full(*where):\n    if fails.pop(): raise OSError(28, 'No space left on device')\n"
        "def later(*where): return full() if fails else allocate(*where)\n"
        "os.posix_fallocate = later\ncomm.subset([1, 0])"
    )
    for seen in (cell(text), cell("'the communicator cannot be made anew'")):
        assert (seen.error.kind, seen.error.message) == ("OSError", "[Errno 28] No space left on device")
    assert cell("os.posix_fallocate = allocate\ncomm.subset([1, 0]).barrier()\nkept").values == {0: "1", 1: "1"}


def test_without_the_plug_in_a_free_port_is_taken_and_named(own_root, monkeypatch):
    """pytorch#73320: 29500 was taken by another run."""
    monkeypatch.setattr(rendezvous, "installed", lambda: False)
    group = Group(2, backend="gloo", alone=False)
    with pytest.warns(UserWarning, match=r"lt_core is not installed, so torchrun meets on port \d+"):
        assert run(group, "rank").values == {0: "0", 1: "1"}
    group.stop()


def test_a_rank_starts_no_group(cell):
    seen = cell("from lt_core.comm.group import Cell, Group\nGroup(2, backend='gloo').run(Cell('1'), print)")
    assert seen.error.message == "a rank cannot start a group; try: comm.subset(ranks)"
