"""Where processes find each other before they can talk: in files of a launch's folder, or in torchrun's own store.

In a folder each group has a file of its own: one that all share only grows, and one full disk would spoil it for good.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from torch._C._distributed_c10d import FileStore, PrefixStore, Store

ENDED = "ended"


class Meeting(Protocol):
    """A place known to all ranks, in which each group has a name."""

    def store(self, group: str) -> Store:
        """The store in which the group's ranks exchange their addresses."""
        ...

    def board(self, group: str, size: int) -> memoryview | None:
        """A number for each rank of the group, which it writes and all read; None where they share no memory."""
        ...

    def end(self, group: str, reason: str) -> None:
        """Write down why the group ends; the first reason stays."""
        ...

    def ended(self, group: str) -> str:
        """Why the group was ended; nothing while it lives."""
        ...


class InFolder:
    """Ranks of one host."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def store(self, group: str) -> Store:
        """A file."""
        return FileStore(str(self._folder / f"meet.{group}"), -1)

    def board(self, group: str, size: int) -> memoryview | None:
        """Shared memory, in a file."""
        with open(os.open(self._folder / f"board.{group}", os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            file.truncate(8 * size)
            return memoryview(mmap.mmap(file.fileno(), 8 * size)).cast("q")

    def end(self, group: str, reason: str) -> None:
        """A file that appears whole."""
        written = self._folder / f"reason.{group}.{id(self)}"
        written.write_text(reason)
        try:
            (self._folder / f"{ENDED}.{group}").hardlink_to(written)
        except FileExistsError:
            return
        finally:
            written.unlink()

    def ended(self, group: str) -> str:
        """What that file says."""
        path = self._folder / f"{ENDED}.{group}"
        return path.read_text() if path.exists() else ""


class InStore:
    """Ranks that torchrun started, on one host or many."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def store(self, group: str) -> Store:
        """A part of it."""
        return PrefixStore(group, self._store)

    def board(self, group: str, size: int) -> memoryview | None:
        """None: they may be on several hosts."""

    def end(self, group: str, reason: str) -> None:
        """A key of the group's part."""
        with suppress(RuntimeError):  # the store may have ended with its host: then nobody reads it
            self.store(group).compare_set(ENDED, "", reason)

    def ended(self, group: str) -> str:
        """What stands there."""
        store = self.store(group)
        try:
            return store.get(ENDED).decode() if store.check([ENDED]) else ""
        except RuntimeError:
            return "torchrun's store is gone, and with it the host that kept it"
