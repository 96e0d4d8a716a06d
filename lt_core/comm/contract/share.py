"""How the ranks of one host get their pages: rank 0 makes a file in a private folder, tells where, and unlinks it."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from pathlib import Path

import torch

from lt_core.base.errors import UserError
from lt_core.comm import host
from lt_core.comm.comm import Comm
from lt_core.comm.contract.pages import Pages, pages_bytes
from lt_core.comm.uncounted import uncounted

_PATH = 1024  # bytes of the message that tells the path


def share(comm: Comm) -> Pages:
    """The pages of a group; every rank calls it. Errors: ranks on several hosts, no room in the temporary folder."""
    nbytes = pages_bytes(comm.size)
    folder = _private() if comm.rank == 0 else None
    try:
        path = _told(comm, folder / "pages" if folder else None, nbytes)
        memory, lock = _mapped(path, nbytes)
        comm.barrier()
    finally:
        if folder:
            shutil.rmtree(folder)
    return Pages(memory, comm.size, comm.rank, lock)


def _private() -> Path:
    """A new folder: in the launch's own, where there is one, which is swept also after a rank that was killed."""
    return Path(tempfile.mkdtemp(prefix="ltlab-pages-", dir=host.environment(host.MARK) or None))


def _told(comm: Comm, path: Path | None, nbytes: int) -> Path:
    """The path that rank 0 made a file at."""
    note = torch.zeros(_PATH, dtype=torch.uint8, device=comm.device)
    if path:
        try:
            path.write_bytes(bytes(nbytes))  # not a hole: a full disk is to be found here, not when a page is written
        except OSError as error:
            raise UserError(
                "no room for the contract's pages", error.strerror, f"{nbytes} bytes in {path.parent}"
            ) from error
        text = str(path).encode()
        note[: len(text)] = torch.frombuffer(bytearray(text), dtype=torch.uint8)
    with uncounted(comm):
        comm.broadcast(note, 0)
    return Path(bytes(note.tolist()).rstrip(b"\0").decode())


def _mapped(path: Path, nbytes: int) -> tuple[mmap.mmap, int]:
    """The memory, and a descriptor of the file to lock."""
    try:
        with path.open("r+b") as file:
            return mmap.mmap(file.fileno(), nbytes), os.open(path, os.O_RDWR)
    except OSError as error:
        raise UserError(
            "the contract holds for ranks of one host", f"no {path} here", attempt="the communicator itself"
        ) from error
