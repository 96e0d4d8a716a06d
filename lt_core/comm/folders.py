"""A private folder for each launch: its ranks meet there, its results and its sockets lie there.

<root>/                 one a user, 0700: $XDG_RUNTIME_DIR/lt_core, or lt_core-<uid> in the temporary folder
  k3v9x2a1/lock         held (flock) while the launch lives: who can take it may sweep what the dead left
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text
from lt_core.comm import host

ALWAYS_BYTES = 4 << 20
LONGEST = 60  # a Unix socket's path ends at 107 bytes (103 on macOS); what stands below the root takes some 30
NEWBORN, NEWBORN_S = ".new-", 60


class Folder(NamedTuple):
    """A launch's folder, and the descriptor of its lock: open means alive. A context, which removes it at its end."""

    path: Path
    lock: int

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.lock)


def root() -> Path:
    """This user's folder for launches. Errors: `UserError` naming it where it is another's."""
    runtime, own = host.environment("XDG_RUNTIME_DIR"), f"lt_core-{os.getuid()}"
    places = [Path(runtime, "lt_core")] if runtime and os.access(runtime, os.W_OK) else []
    places += [Path(tempfile.gettempdir(), own), Path("/tmp", own)]
    fitting = [place for place in places if len(os.fsencode(place)) <= LONGEST and not _on_network(place)]
    return _private(fitting[0] if fitting else places[-1])


def make(nbytes: int = 0) -> Folder:
    """A new folder, locked, with room for `nbytes`. Errors: `UserError` naming the place where it is full."""
    top = root()
    check_room(top, nbytes)
    born = Path(tempfile.mkdtemp(prefix=NEWBORN, dir=top))
    lock = os.open(born / "lock", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return Folder(born.rename(born.with_name(born.name.removeprefix(NEWBORN))), lock)  # locked before it has a name


def check_room(top: Path, nbytes: int = 0) -> None:
    """Errors: `UserError` naming a place in which there is no room for `nbytes` and what a launch always needs."""
    free, needed = shutil.disk_usage(top).free, ALWAYS_BYTES + nbytes
    if free < needed:
        what = f"the folder {top} is full"
        raise UserError(what, f"{bytes_text(free)} free", bytes_text(needed), "XDG_RUNTIME_DIR=a roomier folder")


def sweep() -> list[Path]:
    """End what dead launches left running, remove their folders, and say which."""
    dead = [place for place in root().iterdir() if place.is_dir() and not lives(place)]
    for place in dead:
        host.end(lambda place=place: host.marked(place))  # type: ignore[misc]
        shutil.rmtree(place, ignore_errors=True)
    return dead


def lives(folder: Path) -> bool:
    """Whether somebody still holds the lock of a launch's folder."""
    try:
        if folder.name.startswith(NEWBORN):
            return time.time() - folder.stat().st_mtime < NEWBORN_S
        with open(folder / "lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:  # no lock: its owner is removing it, or died while doing so
        return False
    return False


def _private(folder: Path) -> Path:
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        what = f"the folder {folder} is not ours alone"
        raise UserError(what, f"owner {found.st_uid}", f"owner {os.getuid()}", "XDG_RUNTIME_DIR=a folder of yours")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
    return folder


def _on_network(folder: Path) -> bool:
    """Whether it lies on another host's disk, where locks and sockets fail."""
    kinds = host.mounts()
    above = next((str(place) for place in (folder, *folder.parents) if str(place) in kinds), "")
    return kinds.get(above, "").startswith(("nfs", "cifs", "smb", "fuse.sshfs"))
