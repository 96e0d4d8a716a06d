"""What the operating system tells is what is so: processes by id, sockets by inode, the loopback's own counter."""

import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from lt_core.comm import host


@pytest.fixture
def family():
    """A shell, its two sleeping children, in their own session."""
    script = "sleep 60 & sleep 60 & echo ready; wait"
    shell = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert shell.stdout.readline() == "ready\n"
    yield shell
    host.end(lambda: [shell.pid, *host.descendants(shell.pid)])
    shell.wait()
    shell.stdout.close()


def test_the_machine():
    assert host.cores() == len(psutil.Process().cpu_affinity())
    assert host.loopback() in psutil.net_if_addrs()
    assert host.mounts()["/proc"] == "proc"


def test_a_file_has_its_size_and_its_space(tmp_path):
    with open(tmp_path / "page", "w+b") as file:
        host.allocate(file.fileno(), 5000)
        host.allocate(file.fileno(), 5000)
        assert file.read() == bytes(5000) and os.fstat(file.fileno()).st_blocks * 512 >= 5000
        with pytest.raises(OSError):
            host.allocate(file.fileno(), 1 << 62)


def test_the_environment_is_read_where_it_stands(monkeypatch):
    monkeypatch.setenv("LT_CORE_TRIED", "yes")
    assert (host.environment("LT_CORE_TRIED"), host.environment("LT_CORE_UNSET")) == ("yes", "")


def test_it_loads_by_its_path_with_the_standard_library_alone():
    code = f"import importlib.util as u; s = u.spec_from_file_location('host', {str(host.__file__)!r});"
    code += "m = u.module_from_spec(s); s.loader.exec_module(m); print(m.cores())"
    told = subprocess.run([sys.executable, "-S", "-E", "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(told) == host.cores()


def test_descendants_are_found_and_ended_by_id(family):
    below = host.descendants(family.pid)
    assert sorted(below) == sorted(p.pid for p in psutil.Process(family.pid).children(recursive=True))
    assert len(below) == 2 and all(map(host.alive, below))
    assert host.end(lambda: host.descendants(family.pid)) == []
    assert not any(map(host.alive, below))


def test_a_process_without_a_living_parent_is_found_by_its_mark(tmp_path):
    environment = {**os.environ, host.MARK: str(tmp_path)}
    orphaned = ["sh", "-c", "setsid sleep 60 > /dev/null & echo $!"]
    pid = int(subprocess.run(orphaned, env=environment, stdout=subprocess.PIPE).stdout)
    assert pid in host.marked(tmp_path) and host.marked(tmp_path / "other") == []
    assert host.end(lambda: host.marked(tmp_path)) == []
    assert not host.alive(pid)


def test_how_a_process_ended_is_known_until_it_is_collected():
    child = subprocess.Popen(["sleep", "60"])
    watched = host.watch(child.pid)
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PIDFD, watched, os.WEXITED | os.WNOWAIT)
    os.close(watched)
    assert not host.alive(child.pid)
    assert os.waitstatus_to_exitcode(host.wait_status(child.pid)) == -signal.SIGKILL
    child.wait()
    assert host.wait_status(child.pid) is None and host.watch(child.pid) is None


def test_threads_of_some_names_stand_back():
    """Other threads may have any name: the kernel cuts one after 15 bytes, also within a letter."""
    names, done = [b"a_patient_one", b"one", b"Messger\xc3\xa4te_n\xc3"], threading.Event()
    named = threading.Barrier(1 + len(names))

    def wait(name):
        Path("/proc/thread-self/comm").write_bytes(name)
        named.wait(5)
        done.wait(5)

    threads = [threading.Thread(target=wait, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    named.wait(5)
    host.stand_back(["a_patient_one", "another"])
    kinds = [os.sched_getscheduler(thread.native_id) for thread in (*threads, threading.main_thread())]
    done.set()
    for thread in threads:
        thread.join()
    assert kinds == [os.SCHED_BATCH, os.SCHED_OTHER, os.SCHED_OTHER, os.SCHED_OTHER]


def test_what_does_not_end_is_told():
    child = subprocess.Popen(["sleep", "60"])
    assert host.end(lambda: [child.pid], within_s=0) == [child.pid]
    child.kill()
    child.wait()


def test_shutting_sockets_frees_who_reads_and_spares_listeners_and_others():
    before = host.sockets()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        theirs, _ = server.accept()
        made = host.sockets() - before
        assert {fd for fd, _ in made} == {server.fileno(), ours.fileno(), theirs.fileno()}
        read = []
        reader = threading.Thread(target=lambda: read.append(theirs.recv(1)))
        reader.start()
        assert host.shut(made) == 2
        reader.join(5)
        assert read == [b""]
        with socket.create_connection(server.getsockname()) as late:  # the listener still listens
            assert host.shut({(late.fileno(), 0)}) == 0  # same descriptor, another inode: not ours
            late.sendall(b"x")
        theirs.close()


def test_the_loopback_counts_what_is_sent():
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as ours:
        theirs, _ = server.accept()
        before = host.loopback_bytes()
        sender = threading.Thread(target=ours.sendall, args=(bytes(1 << 20),))
        sender.start()
        with theirs, theirs.makefile("rb") as stream:
            assert len(stream.read(1 << 20)) == 1 << 20
        sender.join(5)
        assert host.loopback_bytes() - before >= 1 << 20
