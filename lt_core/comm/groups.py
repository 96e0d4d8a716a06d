"""What carries a group of processes: torch's back end. How it is made, what it posts, how it is ended.

gloo cannot be aborted. So its sockets are noted while the group is made, by descriptor and inode, and shutting them
down frees whoever waits in it, here and at their other ends. Its thread spins while a message lies there that nobody
has asked for yet, often on the core where that is about to be done: so it is told to stand back.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch._C._distributed_c10d import Store

from lt_core.comm import host, small
from lt_core.comm.all_here import all_here
from lt_core.comm.meeting import Meeting

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Work

    from lt_core.comm.comm import Ends

GLOO_THREADS = ("gloo_tcp_loop", "pt_gloo_runloop")  # who reads its sockets, and who does what was asked
MAKING_S = 60.0  # how long torch may take to make a group of those who have come
FAR = timedelta(days=1)  # torch's own limit: ours is on each wait, and what was begun may lie as long as it likes


class Carrier(NamedTuple):
    """One group's back end, where its ranks met, and its sockets as (descriptor, inode)."""

    torch: Any  # a torch.distributed.ProcessGroupGloo or ...NCCL, called directly: it saves a third of a small message
    name: str
    meeting: Meeting
    sockets: frozenset[tuple[int, int]]

    @property
    def backend(self) -> str:
        """`gloo` or `nccl`."""
        return str(self.torch.name())

    def exchange(self, sends: Ends, receives: Ends) -> list[Work]:
        """Post receives, then sends, so that what comes finds its place; on GPUs all are one batch, of bytes."""
        if self.backend == "gloo":
            works = [self.torch.recv([x], peer, 0) for x, peer in receives]
            return works + [self.torch.send([x], peer, 0) for x, peer in sends]
        self.torch._start_coalescing()
        for x, peer in receives:
            self.torch.recv([_as_bytes(x)], peer, 0)
        for x, peer in sends:
            self.torch.send([_as_bytes(x)], peer, 0)
        return [self.torch._end_coalescing()]

    def all_reduce(self, x: Tensor) -> Work:
        """Post a sum."""
        if self.backend == "gloo" and small.suits(self.torch.size(), x.nbytes):
            return cast("Work", small.OneRound(self.torch, x))
        return cast("Work", self.torch.allreduce([x]))

    def ended(self) -> str:
        """Why the group was ended, by whichever rank; nothing while it lives."""
        return self.meeting.settled(f"ended.{self.name}")

    def end(self, reason: str) -> None:
        """Free whoever waits in the group, here and on its other ranks, and leave the reason for them."""
        try:
            with suppress(OSError):  # the folder is full or gone: they still learn that it ended, and we raise why
                self.meeting.settle(f"ended.{self.name}", reason)
        finally:
            if self.backend == "gloo":
                host.shut(set(self.sockets))
            else:
                self.torch.abort()


def whole(meeting: Meeting, backend: str, rank: int, size: int, device: torch.device, timeout_s: float) -> Carrier:
    """All processes. They are torch's default group too, so that plain torch.distributed works beside it."""
    before, bound = host.sockets(), device if device.type == "cuda" else None
    dist.init_process_group(
        backend, store=meeting.store("world"), rank=rank, world_size=size, timeout=_limit(timeout_s), device_id=bound
    )
    group = dist.group.WORLD
    assert group
    return _noted(group._get_backend(device), "world", meeting, device, before)


def some(whole: Carrier, name: str, rank: int, size: int, device: torch.device, timeout_s: float) -> Carrier:
    """A group of `size` processes, this one its `rank`. Errors: `Deadline` naming who did not come; `Aborted`."""
    meeting, make = whole.meeting, _gloo if whole.backend == "gloo" else _nccl
    with all_here(meeting, name, rank, size, timeout_s, whole.ended):
        before = host.sockets()
        made = make(meeting.store(name), rank, size, min(timeout_s, MAKING_S))
        return _noted(made, name, meeting, device, before)


def _limit(timeout_s: float) -> timedelta:
    return timedelta(seconds=timeout_s)


def _gloo(store: Store, rank: int, size: int, timeout_s: float) -> Any:
    return dist.ProcessGroupGloo(store, rank, size, _limit(timeout_s))


def _nccl(store: Store, rank: int, size: int, timeout_s: float) -> Any:
    options = dist.ProcessGroupNCCL.Options()
    options._timeout = _limit(timeout_s)
    return dist.ProcessGroupNCCL(store, rank, size, options)


def _noted(made: Any, name: str, meeting: Meeting, device: torch.device, before: set[tuple[int, int]]) -> Carrier:
    # All meet now. Else one could leave while others still connect to it, and NCCL's first exchange needs everybody.
    made.allreduce([torch.zeros(1, device=device)]).wait()
    if isinstance(made, dist.ProcessGroupGloo):
        made._set_default_timeout(FAR)
        host.stand_back(GLOO_THREADS)
    return Carrier(made, name, meeting, frozenset(host.sockets() - before))


def _as_bytes(x: Tensor) -> Tensor:
    return x.detach().view(-1).view(torch.uint8)
