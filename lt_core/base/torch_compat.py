"""The one place that asks which torch runs, so that a version's change is met here and nowhere else."""

from __future__ import annotations


def torch_version() -> tuple[int, int]:
    """(major, minor) of the installed torch."""
    import torch

    major, minor = torch.__version__.split("+")[0].split(".")[:2]
    return int(major), int(minor)
