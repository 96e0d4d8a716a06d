"""A file in shared memory has a name only until all ranks have mapped it, and says whose it is.

lt_core-1000-5f0c...     made by one rank (new or not at all, 0600, locked), unlinked by it, at the latest by the
                         next launch: its first bytes name owner, process, the machine's boot and the start
"""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lt_core.base.units import bytes_text
from lt_core.comm import host

PREFIX = "lt_core-"
HEADER_BYTES = 4096
SPARE_BYTES = 1 << 20  # left to others
NEWBORN_S = 60.0  # how long a file may be without a header


def folder() -> Path | None:
    """Where shared memory has names; None where it has none."""
    return next(
        (Path(place) for place, kind in host.mounts().items() if kind == "tmpfs" and place.endswith("/shm")), None
    )


def free_bytes() -> int:
    """How much there is room for; none where there is no shared memory."""
    found = os.statvfs(place) if (place := folder()) else None
    return found.f_bavail * found.f_frsize if found else 0


def no_room(nbytes: int) -> str:
    """Why there is no room for `nbytes`, or nothing."""
    place = folder()
    if place is None or not os.access(place, os.W_OK):
        return "there is no shared memory"
    free = free_bytes()
    needed = nbytes + SPARE_BYTES
    return f"{place} has {bytes_text(free)} free of the {bytes_text(needed)} needed" if free < needed else ""


@contextmanager
def made(nbytes: int) -> Iterator[Path]:
    """A new file of `nbytes` zeros behind its header, which nobody else may open; its name ends with the context."""
    place = folder()
    assert place
    path = place / f"{PREFIX}{os.getuid()}-{secrets.token_hex(16)}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        host.allocate(fd, nbytes)
        os.pwrite(fd, header(os.getpid()), 0)
        yield path
    finally:
        path.unlink(missing_ok=True)
        os.close(fd)


def header(pid: int) -> bytes:
    """Whose a file is: user, process, and the boot and start by which no other process is it."""
    return f"lt_core {os.getuid()} {pid} {host.life(pid)}\n".encode()


def sweep() -> list[str]:
    """Remove what dead processes of this user left, and say what it was; what is another's is not touched."""
    place = folder()
    found = list(place.glob(f"{PREFIX}*")) if place else []
    return [path.name for path in found if _swept(path)]


def _swept(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:  # another's, a link, or gone
        return False
    try:
        if not _left(fd):
            return False
        path.unlink(missing_ok=True)
        return True
    finally:
        os.close(fd)


def _left(fd: int) -> bool:
    """Whether the file is ours and its owner dead."""
    found = os.fstat(fd)
    if found.st_uid != os.getuid() or not stat.S_ISREG(found.st_mode):
        return False
    words = os.pread(fd, HEADER_BYTES, 0).partition(b"\n")[0].decode(errors="replace").split(" ", 3)
    headed = len(words) == 4 and words[0] == "lt_core" and words[2].isdigit()
    if not headed and time.time() - found.st_mtime <= NEWBORN_S:
        return False  # nor locked, even for a moment: its maker is about to
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # alive, also in another container, where its number says nothing
        return False
    return not headed or host.life(int(words[2])) != words[3]
