"""Who had which gradient: one short message a step, after which all ranks know the same about every parameter.

                 weight  bias  head          A gradient that is missing on one rank counts as zero there; what nobody
    rank 0         1      1      .           used stays None, or momentum and weight decay would move it all the same.
    rank 1         1      .      .           Without this a rank would wait for a message that another never sends.
    all            2      1      0

Law: 8 (2 + 4 n) bytes for n parameters, through the backend's own all-reduce; a bucket's own roll has 8 n.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from typing import NamedTuple

import torch
from torch import nn

from lt_core.base.errors import Mismatch, UserError
from lt_core.comm.comm import Comm

_SAMPLES = "how many of them this rank had, 0 or more"


class Roll(NamedTuple):
    """What all ranks know after a step's backward: names of parameters, in their order."""

    trains: list[str]
    used: list[str]  # on one rank at least
    sparse: list[str]  # of these, those that are sparse wherever they are used
    late: list[str]  # on one rank at least, a part of the gradient came when its bucket had left
    scale: float  # turns the mean over ranks into the mean over samples

    @property
    def dense(self) -> list[str]:
        """Those whose mean is an ordinary tensor."""
        return [name for name in self.used if name not in self.sparse]


def call_roll(
    comm: Comm,
    parameters: Mapping[str, nn.Parameter],
    samples: float | None = None,
    used: Collection[str] = (),
    late: Collection[str] = (),
) -> Roll:
    """The roll, from what every rank tells. used: names with a gradient that is no longer in `.grad`; late: as in Roll.

    Errors, on every rank alike: samples given on some ranks only, a parameter that is frozen on some ranks only.
    """
    rows = [
        [p.requires_grad for p in parameters.values()],
        [p.grad is not None or name in used for name, p in parameters.items()],
        [p.grad is not None and p.grad.is_sparse for p in parameters.values()],
        [name in late for name in parameters],
    ]
    weight = [samples is not None, samples or 0]
    told = torch.tensor([*weight, *chain(*rows)], dtype=torch.float64, device=comm.device)
    comm.all_reduce(told)
    given, total, *counts = told.tolist()
    return _roll(comm.size, list(parameters), given, total, torch.tensor(counts).view(len(rows), -1).tolist())


def how_many(samples: object) -> float | None:
    """How many samples there were, if that was told. Errors: no number, or one below 0."""
    try:
        number = None if samples is None else float(samples)  # type: ignore[arg-type]  # a tensor of one is a number
    except (TypeError, ValueError, RuntimeError):
        raise UserError("these are no samples", type(samples).__name__, _SAMPLES, "len(batch)") from None
    if number is not None and not 0 <= number < float("inf"):
        raise UserError("these are no samples", samples, _SAMPLES)
    return number


def used_by_some(comm: Comm, names: Collection[str], used: Collection[str]) -> list[str]:
    """Those of `names` that are `used` on one rank at least: the roll of a bucket that does not wait for the others."""
    told = torch.tensor([name in used for name in names], dtype=torch.float64, device=comm.device)
    comm.all_reduce(told)
    return [name for name, ranks in zip(names, told.tolist()) if ranks]


def _roll(size: int, names: list[str], given: float, total: float, counts: list[list[float]]) -> Roll:
    trains, used, sparse, late = counts
    if 0 < given < size:
        raise Mismatch(f"sync was told the samples of {given:.0f} ranks", expected=f"those of all {size}, or of none")
    if torn := [name for name, n in zip(names, trains) if 0 < n < size]:
        frozen = f"{size - trains[names.index(torn[0])]:.0f} of {size} ranks"
        raise Mismatch(f"{torn[0]} is frozen on {frozen}", expected="requires_grad alike on every rank")
    return Roll(
        [name for name, n in zip(names, trains) if n],
        [name for name, n in zip(names, used) if n],
        [name for name, n, m in zip(names, used, sparse) if 0 < n == m],
        [name for name, n in zip(names, late) if n],
        size / (total or 1) if given else 1.0,
    )
