"""Cells of `%%torchrun` against ipyparallel: from nothing to the first sum, and then cell after cell.

A cold start lasts until two or four processes have a communicator and a first all-reduce of theirs came out right. An
empty cell has nothing to do; an all-reduce cell sums 1,024 numbers and gives its value back to the notebook. Ours run
as a notebook's cells do, their text shown and all; the peer by the fastest of its calls, which shows nothing.
"""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

import ipyparallel
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Any
from traitlets.config import Config

from benchmarks.rows import Row, compare, printed, seconds
from lt_core.comm import host, limits
from lt_core.comm.group import Group
from lt_core.magics.torchrun import Torchrun

BENCH, PEER = "magics", "ipyparallel"
RANKS = (2, 4)
ELEMENTS, ROUNDS, CELLS = 1024, 41, 20
SUM = f"x = torch.ones({ELEMENTS})\ncomm.all_reduce(x)\nfloat(x.sum())\n"
ENGINE = """
import torch
import torch.distributed as dist

dist.init_process_group("gloo", init_method="file://{store}", rank={rank}, world_size={size})

def all_reduced(elements):
    x = torch.ones(elements)
    dist.all_reduce(x)
    return float(x.sum())
"""
QUIET = Config({"HistoryManager": {"enabled": False}})


def rows() -> Iterator[Row]:
    """The rows, each as soon as it is measured."""
    compared = partial(compare, BENCH, peer_name=PEER, packages=("torch", "ipyparallel", "ipython"))
    for size in RANKS:
        yield compared(f"cold start, {size} ranks", partial(cold, Ours, size), partial(cold, Peer, size))
    for size in RANKS:
        with Ours(size) as ours, Peer(size) as peer:
            pairs = {"empty cell": (ours.empty, peer.empty), "all-reduce cell": (ours.summed, peer.summed)}
            for case, (mine, theirs) in pairs.items():
                yield compared(f"{case}, {size} ranks", each(mine), each(theirs), rounds=ROUNDS)


def cold(kind: Callable[[int], AbstractContextManager[object]], size: int) -> float:
    """How long it takes until the first sum was right; the end is not counted."""
    with ExitStack() as ended:
        return seconds(lambda: ended.enter_context(kind(size)))()


def each(cell: Callable[[], None]) -> Callable[[], float]:
    """How long a cell takes, of several in a row: the first ones are disturbed by what the other has left running."""

    def repeated() -> None:
        for _ in range(CELLS):
            cell()

    timed = seconds(repeated)
    return lambda: timed() / CELLS


class Ours:
    """A notebook whose cells run on ranks; a context, in which the first all-reduce has come out right."""

    def __init__(self, size: int) -> None:
        self._size = size
        with TemporaryDirectory() as folder:
            self._shell = InteractiveShell(config=QUIET, ipython_dir=folder)
        self._shell.add_traits(kernel=Any())  # so that cells are shown as in a notebook
        self._shell.display_pub = CapturingDisplayPublisher()
        self._magic = Torchrun(self._shell, partial(Group, alone=False))
        self._shell.register_magics(self._magic)

    def empty(self) -> None:
        """A cell that does nothing."""
        self._shell.run_cell_magic("torchrun", "", "pass\n")

    def summed(self) -> None:
        """A cell that sums, and shows the sum."""
        self._shell.run_cell_magic("torchrun", f"-n {self._size}", SUM)
        shown = self._shell.display_pub.outputs.pop()
        assert shown["data"] == {"text/plain": f"ranks 0-{self._size - 1} -> {float(ELEMENTS * self._size)}"}

    def __enter__(self) -> Self:
        self.summed()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._magic.close()


class Peer:
    """A cluster of ipyparallel whose engines have joined a process group; a context, as above."""

    def __init__(self, size: int) -> None:
        self._size, self._folder = size, TemporaryDirectory()
        self._cluster = ipyparallel.Cluster(n=size, profile_dir=self._folder.name, log_level=logging.CRITICAL)

    def empty(self) -> None:
        """A cell that does nothing."""
        self._view.execute("pass", silent=True, block=True)

    def summed(self) -> None:
        """A sum, and its value."""
        values = self._view.apply_sync(ipyparallel.Reference("all_reduced"), ELEMENTS)
        assert values == [float(ELEMENTS * self._size)] * self._size

    def __enter__(self) -> Self:
        options = {"OMP_NUM_THREADS": str(max(1, limits.cores() // self._size)), "GLOO_SOCKET_IFNAME": host.loopback()}
        os.environ |= options
        self._client = self._cluster.start_and_connect_sync()
        self._view = self._client[:]
        store = str(Path(self._folder.name) / "store")
        here = {rank: ENGINE.format(store=store, rank=rank, size=self._size) for rank in self._client.ids}
        for joining in [self._client[rank].execute(text, block=False) for rank, text in here.items()]:
            joining.get()
        self.summed()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.close()
        self._cluster.stop_cluster_sync()
        self._folder.cleanup()


def main() -> list[Row]:
    """Print the rows as JSON lines."""
    return printed(rows())


if __name__ == "__main__":
    main()
