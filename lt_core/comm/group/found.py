"""The groups of this user, whoever started them: each has a folder, and lives while its keeper holds the lock there."""

from __future__ import annotations

import json
import os
import select
import signal
from pathlib import Path

from lt_core.comm import folders, host
from lt_core.comm.group.cell import Status

FILE = "group.json"


def find() -> list[Status]:
    """The groups that live, the oldest first."""
    found = [status for place in folders.root().iterdir() if (status := _read(place)) and folders.lives(place)]
    return sorted(found, key=lambda status: (status.since_s, status.folder))


def stop_all() -> list[Status]:
    """End every group of this user, and sweep what dead ones left; gives those that lived."""
    stopped = find()
    for status in stopped:
        stop(status)
    folders.sweep()
    return stopped


def stop(status: Status) -> None:
    """End a group: its keeper ends all its processes."""
    watched = host.watch(status.keeper)
    if not folders.lives(Path(status.folder)):  # asked after the watch: what lives now is what is watched
        return
    os.kill(status.keeper, signal.SIGTERM)
    if watched is not None:
        select.select([watched], [], [], host.END_S + 1)
        os.close(watched)
    host.end(lambda: host.marked(Path(status.folder)))


def write(status: Status) -> None:
    """Let others find it."""
    path = Path(status.folder) / FILE
    part = path.with_suffix(".part")
    part.write_text(json.dumps(status._asdict()))
    part.rename(path)


def _read(place: Path) -> Status | None:
    try:
        status = Status(**json.loads((place / FILE).read_text()))
    except (FileNotFoundError, NotADirectoryError):  # a launch's folder, or one that is being removed
        return None
    return status._replace(pids=tuple(status.pids))
