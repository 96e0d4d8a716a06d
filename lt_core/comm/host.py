"""Everything that one operating system has and another has not: processes, sockets, the loopback, the environment.

Standard library only, so that the keeper (a script without torch) can load this file by its path. Linux is supported;
what a function does elsewhere stands in its docstring (macOS: weaker, and untested).
"""

from __future__ import annotations

import ctypes
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

LINUX = sys.platform.startswith("linux")
MARK = "LT_CORE_FOLDER"  # stands in the environment of every process that a launch started: its folder
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
END_S = 5.0  # how long ending processes may take


def die_with_parent() -> None:
    """Let the kernel end this process when its parent dies; nothing on macOS, where the keeper does it alone."""
    if LINUX:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent died; nothing on macOS, where they are lost to us."""
    if LINUX:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def watch(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None on macOS and before Linux 5.3: ask `alive`."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def alive(pid: int) -> bool:
    """Whether the process has not ended (on macOS: or nobody collected it yet)."""
    if LINUX:
        fields = _stat(pid)
        return bool(fields) and fields[0] not in "ZX"
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def life(pid: int) -> str:
    """The machine's boot and the process's start, which no other process has both; empty where it has ended."""
    boot, fields = _bytes("/proc/sys/kernel/random/boot_id").decode().strip(), _stat(pid)
    return f"{boot} {fields[19]}" if fields and fields[0] not in "ZX" else ""


def wait_status(pid: int) -> int | None:
    """How a process ended, for `os.waitstatus_to_exitcode`, while its parent has not collected it; None on macOS."""
    fields = _stat(pid)
    return int(fields[49]) if fields and fields[0] == "Z" else None


def descendants(pid: int) -> list[int]:
    """The ids of the processes below `pid`."""
    parents, found = _parents(), [pid]
    for above in found:  # which grows meanwhile
        found += [child for child, parent in parents.items() if parent == above]
    return found[1:]


def marked(folder: Path) -> list[int]:
    """The ids of this user's processes that carry the launch's folder in their environment; none on macOS."""
    mark = f"{MARK}={folder}".encode()
    return [pid for pid in _pids() if pid != os.getpid() and mark in _bytes(f"/proc/{pid}/environ").split(b"\0")]


def end(find: Callable[[], list[int]], within_s: float = END_S) -> list[int]:
    """End the processes that `find` names, by id, until it names none that lives. Gives those left at `within_s`."""
    until = time.monotonic() + within_s
    while (left := [pid for pid in find() if alive(pid)]) and time.monotonic() < until:
        for pid in left:
            _end_one(pid)
    return left


def _end_one(pid: int) -> None:
    watched = watch(pid)
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        if watched is not None:
            select.select([watched], [], [], 0.5)
            os.close(watched)


def stand_back(names: Collection[str]) -> None:
    """Let this process's threads of those names wait for a core, not take it from who runs there; nothing on macOS."""
    for thread in os.listdir("/proc/self/task") if LINUX else []:
        if _bytes(f"/proc/self/task/{thread}/comm").decode(errors="replace").rstrip("\n") in names:
            with suppress(OSError):  # it has ended since it was listed
                os.sched_setscheduler(int(thread), os.SCHED_BATCH, os.sched_param(0))


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if LINUX else []


def _stat(pid: int) -> list[str]:
    """The fields of a process from its state on; none where it is gone."""
    text = _bytes(f"/proc/{pid}/stat").decode(errors="replace")
    return text.rsplit(")", 1)[1].split() if text else []


def _parents() -> dict[int, int]:
    if LINUX:
        return {pid: int(fields[1]) for pid in _pids() if (fields := _stat(pid))}
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    return {int(pid): int(parent) for pid, parent in map(str.split, listed.splitlines())}


def _bytes(path: str) -> bytes:
    with suppress(OSError):
        return Path(path).read_bytes()
    return b""


def sockets() -> set[tuple[int, int]]:
    """(descriptor, inode) of the internet sockets of this process."""
    found = set()
    for fd in map(int, os.listdir("/proc/self/fd" if LINUX else "/dev/fd")):
        try:
            state = os.fstat(fd)
            if stat.S_ISSOCK(state.st_mode):
                with socket.socket(fileno=os.dup(fd)) as held:
                    if held.family in (socket.AF_INET, socket.AF_INET6):
                        found.add((fd, state.st_ino))
        except OSError:  # closed since it was listed
            continue
    return found


def shut(which: set[tuple[int, int]]) -> int:
    """Shut down those of the sockets that are still open and connected; how many they were."""
    count = 0
    for fd, _ in which & sockets():
        try:
            with socket.socket(fileno=os.dup(fd)) as held:
                if not held.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):  # else it listens: gloo dies of it
                    held.shutdown(socket.SHUT_RDWR)
                    count += 1
        except OSError:  # the other end was quicker
            continue
    return count


def loopback() -> str:
    """The name of the loopback interface: `lo`, on macOS `lo0`."""
    names = [name for _, name in socket.if_nameindex() if re.fullmatch(r"lo\d*", name)]
    return names[0] if names else "lo"


def loopback_bytes() -> int | None:
    """Bytes sent over the loopback since the machine started; None on macOS."""
    counts = re.search(rf"^\s*{loopback()}:(.*)$", _bytes("/proc/net/dev").decode(), re.MULTILINE)
    return int(counts[1].split()[8]) if counts else None


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if LINUX else os.cpu_count() or 1


def allocate(fd: int, nbytes: int) -> None:
    """Give a file that size, its space found now: a full disk is an error here, not a SIGBUS later (macOS: it is)."""
    if LINUX:
        os.posix_fallocate(fd, 0, nbytes)
    else:
        os.ftruncate(fd, nbytes)


def mounts() -> dict[str, str]:
    """The kind of file system of each mounted folder; none on macOS."""
    return {line.split()[1]: line.split()[2] for line in _bytes("/proc/self/mounts").decode().splitlines()}


def environment(name: str) -> str:
    """A variable of the environment, or nothing."""
    return os.environ.get(name, "")
