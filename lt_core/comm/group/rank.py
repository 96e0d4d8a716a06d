"""A rank's own process, from torchrun's start on: python rank.py FOLDER, with RANK in the environment."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import signal
import sys
from pathlib import Path
from typing import NoReturn


def main(folder: Path) -> NoReturn:
    """Answer one cell after another, until the keeper ends this process."""
    facts = json.loads((folder / "job.json").read_text())
    sys.path[:] = facts["path"]  # what the kernel can import, this process can
    parent = os.getppid()

    from lt_core.comm import host, output

    host.die_with_parent()
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)
    rank = int(host.environment("RANK"))
    streams = output.redirect(folder, rank)
    faulthandler.register(signal.SIGUSR1, open(folder / f"stack.{rank}", "wb", 0), all_threads=False)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    gc.disable()  # of what is imported nothing is garbage
    from lt_core.comm.group.seat import Seat

    gc.freeze()
    gc.enable()
    Seat(folder, rank, facts, streams).serve()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
