"""What this machine has, asked once and kept as plain data, so that the doctor's words can be tested on any machine."""

from __future__ import annotations

import platform as python
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from lt_core.base.cluster import Wire

if TYPE_CHECKING:
    from lt_core.comm.comm import Comm

ELEMENTS = 1024
SCRATCH_BYTES = 4 * 2**20  # what a launch asks of its folder


class Gpu(NamedTuple):
    """A card that torch can use."""

    name: str
    memory_bytes: int


class Said(NamedTuple):
    """What one of two ranks says: whether the sum came out right, over what, and the wire that joins them."""

    right: bool
    backend: str
    wire: Wire


class Pair(NamedTuple):
    """Two real ranks that summed `elements` numbers, rightly: over what, in how many seconds, and their wire."""

    backend: str
    elements: int
    seconds: float
    wire: Wire


@dataclass(frozen=True)
class Facts:
    """A machine. `shared_bytes`: free shared memory, None where it cannot be asked; `peers`: whether GPUs read each
    other's memory; `driver`: whether NVIDIA's is there; `trouble`: why there is no `pair`."""

    platform: str
    system: str
    python: str
    torch: str = ""
    cores: int = 0
    memory_bytes: int = 0
    scratch: str = ""
    scratch_bytes: int = 0
    shared_bytes: int | None = None
    gpus: tuple[Gpu, ...] = ()
    peers: bool | None = None
    driver: bool = False
    backends: tuple[str, ...] = ()
    rendezvous: bool = False
    pair: Pair | None = None
    trouble: str = ""


def gather(platform: str = sys.platform, try_two: Callable[[], list[Said]] | None = None) -> Facts:
    """The facts of this machine; on native Windows, where nothing of ours runs, only that it is.

    try_two: what each of two ranks says; two real processes unless another is given.
    """
    facts = Facts(platform, f"{python.system()} {python.release()} ({python.machine()})", python.python_version())
    if platform == "win32":
        return facts
    facts = _two_ranks(_host(facts), try_two or two_processes)
    return _torch(facts)  # last, since asking GPUs initialises CUDA in this process


def _host(facts: Facts) -> Facts:
    from lt_core.base.errors import UserError
    from lt_core.comm import folders, host, limits, rendezvous

    facts = replace(
        facts,
        cores=limits.cores(),
        memory_bytes=limits.free_bytes(),
        shared_bytes=shared_bytes(host.mounts()),
        driver=shutil.which("nvidia-smi") is not None,
        rendezvous=rendezvous.installed(),
    )
    try:
        top = folders.root()
        return replace(facts, scratch=str(top), scratch_bytes=shutil.disk_usage(top).free)
    except (UserError, OSError) as error:
        return replace(facts, scratch=f"no folder ({error})")


def shared_bytes(mounts: Mapping[str, str]) -> int | None:
    """Free bytes of the memory file system in which processes share; None where none is mounted."""
    place = next((place for place, kind in mounts.items() if kind == "tmpfs" and place.endswith("/shm")), None)
    return shutil.disk_usage(place).free if place else None


def _torch(facts: Facts) -> Facts:
    import torch
    from torch import distributed

    there = distributed.is_available()
    known = {"gloo": there and distributed.is_gloo_available(), "nccl": there and distributed.is_nccl_available()}
    cards = [torch.cuda.get_device_properties(k) for k in range(torch.cuda.device_count())]
    peers = torch.cuda.can_device_access_peer(0, 1) if len(cards) > 1 else None
    return replace(
        facts,
        torch=torch.__version__,
        backends=tuple(name for name, has in known.items() if has),
        gpus=tuple(Gpu(card.name, card.total_memory) for card in cards),
        peers=peers,
    )


def _two_ranks(facts: Facts, try_two: Callable[[], list[Said]]) -> Facts:
    start_s = time.perf_counter()
    try:
        said = try_two()
    except Exception as error:  # whatever it is, the doctor's page must come, and show it
        return replace(facts, trouble=f"{type(error).__name__}: {error}")
    wrong = [rank for rank, one in enumerate(said) if not one.right]
    if wrong:
        return replace(facts, trouble=f"{said[0].backend}: the sum came out wrong on rank {wrong[0]}")
    return replace(facts, pair=Pair(said[0].backend, ELEMENTS, time.perf_counter() - start_s, said[0].wire))


def two_processes() -> list[Said]:
    """What two real ranks say. Errors: those of `launch`."""
    from lt_core.comm.launch import launch

    return launch(sum_and_measure, 2, ELEMENTS)


def sum_and_measure(comm: Comm, elements: int) -> Said:
    """On each rank: a sum of both ranks' numbers, and the wire to the other."""
    import torch

    from lt_core.comm.here import here

    x = torch.arange(elements, dtype=torch.float64, device=comm.device)
    wanted = 2 * x + 1000.0  # x on rank 0, x + 1000 on rank 1
    x += 1000.0 * comm.rank
    comm.all_reduce(x)
    return Said(torch.equal(x, wanted), comm.backend, here(comm).inner)
