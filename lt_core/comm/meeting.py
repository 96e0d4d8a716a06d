"""Where processes find each other before they can talk: in files of a launch's folder, or in torchrun's own store.

In a folder each group has a file of its own: one that all share only grows, and one full disk would spoil it for good.
"""

from __future__ import annotations

import mmap
import os
import threading
from pathlib import Path
from typing import Protocol

from torch._C._distributed_c10d import FileStore, PrefixStore, Store

from lt_core.comm import host


class Meeting(Protocol):
    """A place known to all ranks: a store and a board for each group, and words that are settled once for all."""

    def store(self, group: str) -> Store:
        """The store in which the group's ranks exchange their addresses."""
        ...

    def board(self, group: str, size: int) -> memoryview | None:
        """A number for each rank of the group, which it writes and all read; None where they share no memory."""
        ...

    def settle(self, key: str, word: str) -> str:
        """The word under that key: the first that anybody wrote there, which may be this one."""
        ...

    def settled(self, key: str) -> str:
        """The word under that key; nothing while nobody wrote one."""
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
            host.allocate(file.fileno(), 8 * size)
            return memoryview(mmap.mmap(file.fileno(), 8 * size)).cast("q")

    def settle(self, key: str, word: str) -> str:
        """A file that appears whole, or not if there is one."""
        written = self._folder / f"{key}.{threading.get_native_id()}"
        written.write_text(word)
        try:
            (self._folder / key).hardlink_to(written)
        except FileExistsError:
            return self.settled(key)
        finally:
            written.unlink()
        return word

    def settled(self, key: str) -> str:
        """What that file says."""
        path = self._folder / key
        return path.read_text() if path.exists() else ""


class InStore:
    """Ranks that torchrun started, on one host or many. Its store may end with its host: then nothing is settled."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def store(self, group: str) -> Store:
        """A part of it."""
        return PrefixStore(group, self._store)

    def board(self, group: str, size: int) -> memoryview | None:
        """None: they may be on several hosts."""

    def settle(self, key: str, word: str) -> str:
        """A key of the store."""
        try:
            return self._store.compare_set(key, "", word).decode()
        except RuntimeError:
            return word

    def settled(self, key: str) -> str:
        """What stands there."""
        try:
            return self._store.get(key).decode() if self._store.check([key]) else ""
        except RuntimeError:
            return ""
