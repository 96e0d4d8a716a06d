"""The one place that asks which torch runs, so that a version's change is met here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def torch_version() -> tuple[int, int]:
    """(major, minor) of the installed torch."""
    import torch

    major, minor = torch.__version__.split("+")[0].split(".")[:2]
    return int(major), int(minor)


def timing_event() -> torch.cuda.Event:
    """A CUDA event that can be timed; torch leaves its class untyped."""
    import torch

    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
