"""A group's processes from the root: the keeper, which the kernel starts, watches, and ends.

kernel -> keeper -> torchrun -> ranks -> what they started
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from typing import IO

from lt_core.comm import host, kept
from lt_core.comm.folders import Folder
from lt_core.comm.group.ears import Ears

OUTSIDE = "it was ended from outside"


class Tree:
    """The keeper and all below it, which write into `log`. `ended`: why it has ended, once it has, whoever did it."""

    def __init__(self, folder: Folder, ears: Ears, log: IO[bytes]) -> None:
        self.ended = ""
        self.keeper = 0
        self._folder, self._lock, self._ears, self._log = folder.path, folder.lock, ears, log
        self._process: subprocess.Popen[bytes] | None = None
        self._closing, self._over = threading.Event(), threading.Event()

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start torchrun with the keeper above it, which alone holds the folder's lock from now on."""
        self._process = kept.start(command, environment, Folder(self._folder, self._lock), self._log)
        os.close(self._lock)
        self._lock, self.keeper = -1, self._process.pid
        assert self._process.stdout
        self._ears.on(self._process.stdout.fileno(), self._note_end)

    def log(self) -> str:
        """What torchrun said."""
        return os.pread(self._log.fileno(), 1 << 20, 0).decode(errors="replace")

    def outlived(self, within_s: float) -> bool:
        """Whether it has ended from outside, or does so within that time: then a rank's death has no other reason."""
        return self._over.wait(within_s) and self.ended == OUTSIDE

    def end(self) -> None:
        """End every process."""
        self._closing.set()
        if self._process:
            kept.end(self._process, self._folder)

    def close(self) -> None:
        """Close what is open, remove the folder; the ears are closed already."""
        if self._process and self._process.stdout:
            self._process.stdout.close()
        if self._lock >= 0:
            os.close(self._lock)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _note_end(self) -> None:
        """In the ears' thread: nothing of the group may outlive its keeper, however that ended."""
        assert self._process and self._process.stdout
        said = os.read(self._process.stdout.fileno(), 100).decode().split()
        self._ears.off(self._process.stdout.fileno())
        self.ended = f"torchrun ended with {said[1]}" if said else OUTSIDE
        self._over.set()
        self._ears.wake()
        if not self._closing.is_set():
            host.end(lambda: host.marked(self._folder))
            shutil.rmtree(self._folder, ignore_errors=True)
