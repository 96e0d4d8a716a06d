"""What torch leaves untyped or private, so that a version's change is met here and nowhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def settle() -> None:
    """Have torch's functions of float64 exact from the first call on.

    Two threads that share a process's first sine or cosine may choose its precision for each other: in one process of
    eight, half of the results were right to 7e-9 only (torch 2.13 on two cores). One number alone chooses it for all.
    """
    import torch

    torch.ones(1, dtype=torch.float64).sin()


def timing_event() -> torch.cuda.Event:
    """A CUDA event that can be timed; torch leaves its class untyped."""
    import torch

    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def flight() -> list[dict[str, object]]:
    """torch's record of this process's last collectives, as far as TORCH_FR_BUFFER_SIZE has let it keep one."""
    import json

    from torch._C import _distributed_c10d

    dump = getattr(_distributed_c10d, "_dump_fr_trace_json", None)  # a private name: gone, there is no record
    entries: list[dict[str, object]] = json.loads(dump()).get("entries", []) if dump else []
    return entries


def knows_cuda() -> bool:
    """Whether torch has been imported as far as `when_cuda_begins` needs it; it is not imported here."""
    return hasattr(getattr(sys.modules.get("torch"), "cuda", None), "_lazy_call")


def when_cuda_begins(call: Callable[[], None]) -> None:
    """Have `call` called by whoever initialises CUDA in this process; at once where that has happened."""
    import torch

    torch.cuda._lazy_call(call)  # type: ignore[no-untyped-call]
