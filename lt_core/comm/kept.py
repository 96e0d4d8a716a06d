"""A command below the keeper, as whoever starts ranks starts it, and its end, of which nothing is left.

this process -> keeper -> command -> ranks
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from lt_core.comm import host, keeper
from lt_core.comm.folders import Folder


def below_keeper(command: Sequence[str]) -> list[str]:
    """The command with the keeper above it, which ends all of it when this process ends."""
    return [sys.executable, "-S", "-E", str(keeper.__file__), str(os.getpid()), *command]


def start(
    command: Sequence[str], environment: Mapping[str, str], folder: Folder, log: IO[bytes]
) -> subprocess.Popen[bytes]:
    """The keeper, running: it holds the folder's lock, too; what it prints says how the command has ended."""
    return subprocess.Popen(
        below_keeper(command), env={**environment, host.MARK: str(folder.path)}, pass_fds=[folder.lock],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, start_new_session=True,
    )  # fmt: skip


def end(process: subprocess.Popen[bytes], folder: Path) -> None:
    """End the keeper and all that runs below it."""
    assert process.stdin
    process.terminate()
    process.stdin.close()
    try:
        process.wait(host.END_S + 1)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    host.end(lambda: host.marked(folder))  # there are some only where the keeper itself was ended
