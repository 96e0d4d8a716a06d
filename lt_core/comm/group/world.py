"""A rank's communicators, generation after generation: made, ended, freed where somebody is stuck in them.

gloo cannot be aborted and does not hear signals. So the sockets it opens while a group is made are noted, whoever makes
it (this package, or the user by `torch.distributed.new_group`), and shutting those down frees whoever waits in it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch.distributed import distributed_c10d

from lt_core.base.cluster import Wire
from lt_core.comm import groups, host, join
from lt_core.comm.group.checked import Checked, Place
from lt_core.comm.group.pages import Page, Where, generation_folder, now

if TYPE_CHECKING:
    from lt_core.comm.comm import Comm

Made = TypeVar("Made")
FAR_S = 86400.0  # the kernel knows when a wait has lasted too long, and of whom it waits for


class World:
    """The communicators of rank `rank`; `cell`: the name of the cell that runs."""

    def __init__(self, folder: Path, backend: str, rank: int, size: int, shape: Wire | None) -> None:
        self._folder, self._backend, self.rank, self.size, self._shape = folder, backend, rank, size, shape
        self._page = Page(folder / f"page.{rank}")
        self._sockets: set[tuple[int, int]] = set()
        self._whole: Comm | None = None
        self.comm: Checked | None = None
        self.cell = ""
        self._note_groups()

    def renew(self, generation: int, timeout_s: float) -> Comm:
        """A communicator that nobody has used; every rank calls it. One all-reduce has come out right."""
        self.leave("the group was made anew")
        folder = generation_folder(self._folder, generation)
        folder.mkdir(mode=0o700, exist_ok=True)
        self._whole = beneath = join.in_folder(folder, self._backend, self.rank, self.size, timeout_s)
        beneath.timeout_s = FAR_S
        self._whole = join.sharing(beneath, self._backend)
        self._prove(self._whole)
        self._whole = self._shaped(self._whole)  # who waits for a shaped wire is to be freed as well
        place = Place(self._page, folder, self._noted, lambda: self.cell)
        self.comm = Checked(self._whole, place, range(self.size), timeout_s)
        return self.comm

    def begin(self, cell: str, timeout_s: float) -> None:
        """A cell begins."""
        self.cell = cell
        if self.comm is not None:
            self.comm.begin(timeout_s)

    @property
    def broken(self) -> bool:
        """Whether the communicator has ended."""
        return self.comm is None or bool(self.comm.ended)

    def leave(self, reason: str) -> None:
        """End everything: peers that wait for this rank are freed."""
        self.free(reason)
        with self._page.inside(Where("", (self.rank,), 0, 0, now(), "its group's end")):  # gloo joins its threads there
            join.leave()
        self._sockets &= host.sockets()
        self.comm = self._whole = None

    def free(self, reason: str) -> int:
        """Free whoever waits in a group, here and on the other ranks. Any thread may call it."""
        whole = self._whole
        if whole is not None:
            whole.abort(reason)
        return host.shut(set(self._sockets))

    def _prove(self, comm: Comm) -> None:
        x = torch.tensor([2.0**comm.rank], device=comm.device)
        comm.all_reduce(x)
        if x.item() != 2.0**comm.size - 1:
            raise RuntimeError(f"the first all-reduce of {comm.size} ranks gave {x.item()}")
        comm.traffic.clear()

    def _shaped(self, comm: Comm) -> Comm:
        if self._shape is None:
            return comm
        from lt_core.comm.shaped import shaped

        return shaped(comm, self._shape)

    def _noted(self, make: Callable[[], Made]) -> Made:
        before = host.sockets()
        try:
            return make()
        finally:
            self._sockets |= host.sockets() - before
            host.stand_back(groups.GLOO_THREADS)

    def _note_groups(self) -> None:
        """The one place of torch through which its own groups are made."""
        make = distributed_c10d._new_process_group_helper

        def noted(*args: Any, **options: Any) -> Any:
            return self._noted(lambda: make(*args, **options))

        distributed_c10d._new_process_group_helper = noted
