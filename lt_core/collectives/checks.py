"""What a collective refuses before anything moves, on every rank alike."""

from __future__ import annotations

import torch
from torch import Tensor

from lt_core.base.action import Op
from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.comm import checks
from lt_core.comm.comm import Comm

MESSAGES = (Op.SEND, Op.ADD, Op.COPY)


def units(schedule: Schedule) -> int:
    """In how many units its tensor is cut: up to the last one that is sent."""
    return max((a.unit + a.count for a in schedule.actions()), default=1)


def check(comm: Comm, flat: Tensor, schedule: Schedule, cut: int) -> None:
    """Refuse a schedule that cannot run, or is for others or for more units; a tensor that is not dense; a dtype that
    cannot be added."""
    if not isinstance(schedule, Schedule):
        raise UserError(
            "a collective runs a schedule", type(schedule).__name__, "a Schedule", "ring.schedule(comm.size)"
        )
    if comm.rank < 0:
        comm.exchange([], [])  # no member of this group: it says so, even where nothing would be sent
    if schedule.size != comm.size:
        what = f"{schedule.name} is a schedule for {schedule.size} ranks"
        raise UserError(what, f"{comm.size} ranks in this communicator", schedule.size, "schedule(comm.size)")
    if other := next((a for a in schedule.check().actions() if a.op not in MESSAGES), None):
        raise UserError(
            f"{schedule.name} is no collective", f"{other} of rank {other.rank}", "SEND, ADD and COPY alone"
        )
    if cut and cut < units(schedule):
        last = units(schedule)
        raise UserError(f"{schedule.name} has {last} units", f"a tensor cut in {cut}", f"at least {last}")
    checks.tensor(comm, schedule.name, flat, dtypes=())
    if flat.dtype not in checks.SUMMED and any(a.op is Op.ADD for a in schedule.actions()):
        _check_sum(schedule.name, flat.dtype)


def _check_sum(name: str, dtype: torch.dtype) -> None:
    try:
        torch.zeros(1, dtype=dtype).add_(torch.zeros(1, dtype=dtype))
        summed = dtype is not torch.bool  # torch adds these too, to True
    except NotImplementedError:
        summed = False
    if not summed:
        raise UserError(f"{name}: this dtype has no sum", dtype, "one that torch can add", "x.float(), or x.long()")
