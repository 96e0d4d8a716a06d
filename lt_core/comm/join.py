"""How a process becomes a rank: it meets the others, and gets its communicator."""

from __future__ import annotations

import atexit
from pathlib import Path

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore
from torch.distributed.rendezvous import rendezvous

from lt_core.base.errors import UserError
from lt_core.base.torch_compat import settle
from lt_core.comm import groups
from lt_core.comm.comm import Comm
from lt_core.comm.meeting import InFolder, InStore, Meeting
from lt_core.comm.processes import Processes


def in_folder(folder: Path, backend: str, rank: int, size: int, timeout_s: float) -> Processes:
    """Rank `rank` of a launch on this host."""
    return _joined(InFolder(folder), backend, rank, size, rank, timeout_s)


def in_torchrun(backend: str, rank: int, size: int, local_rank: int, timeout_s: float) -> Comm:
    """Rank `rank` of all that the same torchrun started, on one host or on several. It leaves when its script ends."""
    if dist.is_initialized():
        raise UserError("torch.distributed is initialised already", attempt="world() once, first, and keep its result")
    store, *_ = next(rendezvous("env://", rank, size))
    comm = _joined(InStore(PrefixStore("lt_core", store)), backend, rank, size, local_rank, timeout_s)
    atexit.register(_part, comm)
    return sharing(comm, backend)


def sharing(comm: Processes, backend: str) -> Comm:
    """The same ranks with their verbs in shared memory, where that is the back end; gloo stays beneath."""
    if backend != "shared_memory":
        return comm
    from lt_core.comm import shared_memory

    return shared_memory.over(comm)


def leave() -> None:
    """Take leave in order: NCCL complains of those who do not."""
    if dist.is_initialized():
        dist.destroy_process_group()


def _part(comm: Processes) -> None:
    """Leave, and end gloo's threads: one that asks for an interpreter which is gone would end the process by a signal.

    They end with the last mention of their group, and a script's own variables would keep it until then.
    """
    leave()
    _empty(comm)


def _empty(comm: Processes) -> None:
    held = dict(vars(comm))
    vars(comm).clear()
    for subset in held["_subsets"].values():
        _empty(subset)


def _joined(meeting: Meeting, backend: str, rank: int, size: int, local_rank: int, timeout_s: float) -> Processes:
    settle()
    device = torch.device("cuda", local_rank) if backend == "nccl" else torch.device("cpu")
    backend = "nccl" if backend == "nccl" else "gloo"
    if device.type == "cuda":
        torch.cuda.set_device(device)
    carrier = groups.whole(meeting, backend, rank, size, device, timeout_s)
    return Processes(carrier, rank, size, device, timeout_s)
