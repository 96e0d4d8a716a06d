"""A script as a terminal would run it: new processes under PyTorch's torchrun, of which nothing is left afterwards.

run_script("hello_ranks.py", 4)      torchrun --standalone --nproc-per-node 4 hello_ranks.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lt_core.base.errors import Deadline, UserError
from lt_core.comm.kept import below_keeper
from lt_core.comm.launch import environment

LAST = 12  # lines of a failed rank's errors that are shown


def run_script(path: str | Path, ranks: int, *arguments: str, timeout_s: float = 60.0) -> list[str]:
    """What the script prints on each of so many ranks, by rank.

    Errors: `UserError` for a file that is not there, or a script that failed, with its last lines; `Deadline`.
    """
    if not Path(path).is_file():
        raise UserError(f"there is no script {path}", attempt=f"a cell with --save {path} writes it")
    where = f"{path} on {ranks} rank{'s' * (ranks != 1)}"
    with tempfile.TemporaryDirectory() as folder:
        options = ["--standalone", f"--nproc-per-node={ranks}", f"--log-dir={folder}", "--redirects=3"]
        command = [sys.executable, "-m", "torch.distributed.run", *options, str(path), *arguments]
        with kept(command, environment(ranks)) as process:
            try:
                ended, said = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired as error:
                raise Deadline(f"{where} had not ended after {timeout_s:g} s") from error
            finally:
                process.terminate()  # the keeper, which ends all that runs below it
        if ended.strip() != "ended 0":
            first = re.search(r"Root Cause.*?rank\s*: (\d+)", said, re.DOTALL)
            lines = (_printed(Path(folder), int(first[1]), "stderr") if first else said).splitlines()
            raise UserError(f"{where} failed", "\n".join(["", *lines[-LAST:]]))
        return [_printed(Path(folder), rank, "stdout").rstrip() for rank in range(ranks)]


@contextmanager
def kept(command: list[str], variables: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """The command below a keeper, whose own output says how it ended; what the command prints comes as its errors."""
    wanted, ours = os.pipe()  # as long as `ours` is open, the keeper keeps
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(
            below_keeper(command),
            env=variables,
            stdin=wanted,
            stdout=pipe,
            stderr=pipe,
            text=True,
            start_new_session=True,
        ) as process:
            yield process
    finally:
        os.close(wanted)
        os.close(ours)


def _printed(folder: Path, rank: int, stream: str) -> str:
    """What torchrun wrote down of a rank; nothing if it never came that far."""
    return "".join(file.read_text(errors="replace") for file in sorted(folder.glob(f"**/{rank}/{stream}.log")))
