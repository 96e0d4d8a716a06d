"""The one machine that runs every collective: it cuts a tensor in units, sends them, and adds or keeps what comes.

    SEND   flat[unit] ---> peer
    ADD    scratch    <--- peer, then flat[unit] += scratch      one scratch for all rounds
    COPY   flat[unit] <--- peer                                  no detour, unless its round has another use for it

Unit i of p of n elements is [n i // p, n (i + 1) // p). A message without elements is not sent, and both ends know it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lt_core.base.action import Action, Op
from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Trace
from lt_core.base.units import bounds
from lt_core.collectives.buffers import Scratch, copied, ordinary
from lt_core.collectives.watch import Watch, Watched
from lt_core.comm import checks
from lt_core.comm.comm import Comm
from lt_core.engine.execute import execute


def all_reduce(
    comm: Comm, x: Tensor, schedule: Schedule, trace: Trace | None = None, watch: Watch | None = None
) -> Tensor:
    """The sum of all ranks' x, by the algorithm that the schedule is: `all_reduce(comm, x, ring.schedule(comm.size))`.

    x: any shape, dense or strided, of one shape and dtype on all ranks; it is left as it was, and no gradient flows
    through. The result is dense and has the same bits on every rank if the schedule sums each unit in one place.
    watch: what else the trace is to hold of each exchange, such as `watch.chunk_table`.
    Errors: a schedule for another number of ranks, a dtype without a sum, and the communicator's own.
    """
    flat = copied(x)
    run(comm, flat, schedule, trace, watch=watch)
    return flat.view(x.shape)


def run(
    comm: Comm,
    flat: Tensor,
    schedule: Schedule,
    trace: Trace | None = None,
    cut: int = 0,
    scratch: Scratch | None = None,
    watch: Watch | None = None,
) -> None:
    """Any collective, in place, for callers that own the buffer. Errors: those of `all_reduce`.

    flat: (n,), dense. cut: in how many units, where the schedule does not name the last one. scratch: what a loop keeps
    between calls, for new memory costs about as much as the sum itself.
    """
    if comm.rank < 0:
        comm.exchange([], [])  # no member of this group: it says so, even where nothing would be sent
    if schedule.size != comm.size:
        what = f"{schedule.name} is a schedule for {schedule.size} ranks"
        raise UserError(what, f"{comm.size} ranks in this communicator", schedule.size, "schedule(comm.size)")
    checks.tensor(comm, schedule.name, flat, dtypes=())
    if any(a.op is Op.ADD for a in schedule.actions()):
        _check_sum(schedule.name, flat.dtype)
    machine = Machine(comm, flat, cut or units(schedule), scratch)
    trace = trace if trace is not None else Trace(schedule.name)
    execute(schedule, comm.rank, Watched(machine, watch, trace) if watch else machine, trace, comm.timeout_s)


def units(schedule: Schedule) -> int:
    """In how many units its tensor is cut: up to the last one that is sent."""
    return max((a.unit + a.count for a in schedule.actions()), default=1)


class Machine:
    """One rank's end of a schedule over `flat`, a dense tensor in `cut` units."""

    def __init__(self, comm: Comm, flat: Tensor, cut: int, scratch: Scratch | None = None) -> None:
        self.comm, self.cut, self.device = comm, cut, flat.device
        self.flat = ordinary(flat.detach()).view(-1)
        self.scratch = Scratch() if scratch is None else scratch

    def run(self, actions: Sequence[Action]) -> None:
        """One exchange, over on return."""
        places = [(a, self.part(a)) for a in actions]
        full = [(a, place) for a, place in places if place.numel()]
        sends = [(place, a.peer) for a, place in full if a.op is Op.SEND]
        takes = [(a, place) for a, place in full if a.op is not Op.SEND]
        landing = self._landing(takes, [a for a, _ in full])
        if full:
            self.comm.exchange(sends, [(came, a.peer) for (a, _), came in zip(takes, landing)])
        for (a, place), came in zip(takes, landing):
            if a.op is Op.ADD:
                place.add_(came)
            elif came is not place:
                place.copy_(came)

    def abort(self, reason: str) -> None:
        """End every verb of the communicator, here and on its peers."""
        self.comm.abort(reason)

    def part(self, action: Action) -> Tensor:
        """The elements of its units."""
        low, high = bounds(self.flat.numel(), action.unit, self.cut, action.count)
        return self.flat[low:high]

    def nbytes(self, action: Action) -> int:
        """How many bytes it moves."""
        return self.part(action).nbytes

    def _landing(self, takes: Sequence[tuple[Action, Tensor]], round_: Sequence[Action]) -> list[Tensor]:
        """Where each of `takes` lands: in its place, if it is kept and its round has no other use for that place."""
        straight = [a.op is Op.COPY and not any(_overlap(a, b) for b in round_ if b is not a) for a, _ in takes]
        lengths = [place.numel() for (_, place), goes in zip(takes, straight) if not goes]
        pieces = iter(self.scratch.pieces(self.flat, lengths) if lengths else ())
        return [place if goes else next(pieces) for (_, place), goes in zip(takes, straight)]


def _check_sum(name: str, dtype: torch.dtype) -> None:
    try:
        torch.zeros(1, dtype=dtype).add_(torch.zeros(1, dtype=dtype))
        summed = dtype is not torch.bool  # torch adds these too, to True
    except NotImplementedError:
        summed = False
    if not summed:
        raise UserError(f"{name}: this dtype has no sum", dtype, "one that torch can add", "x.float(), or x.long()")


def _overlap(a: Action, b: Action) -> bool:
    return a.unit < b.unit + b.count and b.unit < a.unit + a.count
