"""The groups of this user, whoever started them: each has a folder, and lives while its keeper holds the lock there."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from lt_core.comm import folders, host
from lt_core.comm.group.cell import Status

FILE = "group.json"
NUMBER = (int, float)
KINDS: list[Any] = [str, int, str, NUMBER, int, int, str, bool, list]  # of a Status as it is written
BEGIN_S, LOOK_S = 5.0, 0.01  # how long a group that begins may be without its keeper; how often it is looked for one


def find() -> list[Status]:
    """The groups that live, the oldest first."""
    found = [status for place in folders.root().iterdir() if (status := _read(place)) and folders.lives(place)]
    return sorted(found, key=lambda status: (status.since_s, status.folder))


def stop_all() -> list[Status]:
    """End every group of this user, and sweep what dead ones left; gives those that lived."""
    stopped = [status for status in find() if stop(status)]
    folders.sweep()
    return stopped


def stop(status: Status) -> bool:
    """End a group: its keeper ends all its processes. Whether there was one to end."""
    if not status.size:
        marked = host.marked(Path(status.folder))
        host.end(lambda: host.marked(Path(status.folder)))
        return bool(marked)
    keeper = _keeper(status)
    if not keeper:
        return False
    watched = host.watch(keeper)
    try:
        if not folders.lives(Path(status.folder)):  # asked after the watch: what lives now is what is watched
            return False
        with suppress(ProcessLookupError):  # it has ended since
            os.kill(keeper, signal.SIGTERM)
        if watched is not None:
            select.select([watched], [], [], host.END_S + 1)
    finally:
        if watched is not None:
            os.close(watched)
    host.end(lambda: host.marked(Path(status.folder)))
    return True


def write(status: Status) -> None:
    """Let others find it."""
    path = Path(status.folder) / FILE
    part = path.with_suffix(".part")
    part.write_text(json.dumps(status._asdict()))
    part.rename(path)


def _keeper(status: Status) -> int:
    """Its id; 0 where a group has only been announced, and none comes. To signal 0 would end whoever asks."""
    until_s, folder = time.monotonic() + BEGIN_S, Path(status.folder)
    while not status.keeper and folders.lives(folder) and time.monotonic() < until_s:
        time.sleep(LOOK_S)  # a file has no other way to tell that it has changed
        status = _read(folder) or status
    return status.keeper


def _read(place: Path) -> Status | None:
    try:
        text, since_s = (place / FILE).read_bytes(), (place / FILE).stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):  # a launch's folder, or one that is being removed
        return None
    try:
        status = Status(**json.loads(text))
        if not all(isinstance(fact, kind) for fact, kind in zip(status, KINDS)):
            raise TypeError("other kinds of facts")
    except (TypeError, ValueError):  # another version's: it knows other facts, or writes them in another way
        return Status("another version of LT-Lab", 0, "unknown", since_s, 0, 0, str(place))
    return status._replace(pids=tuple(status.pids))
