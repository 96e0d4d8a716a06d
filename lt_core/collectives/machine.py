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
    checks.tensor(comm, schedule.name, flat, summed=any(a.op is Op.ADD for a in schedule.actions()))
    machine = Machine(comm, flat, cut or units(schedule), scratch)
    trace = trace if trace is not None else Trace(schedule.name)
    execute(schedule, comm.rank, Watched(machine, watch, trace) if watch else machine, trace, comm.timeout_s)


def units(schedule: Schedule) -> int:
    """In how many units its tensor is cut: up to the last one that is sent."""
    return max((a.unit + a.count for a in schedule.actions()), default=1)


def copied(x: Tensor) -> Tensor:
    """The elements of x (any shape, any strides) in a dense buffer of their own: (n,)."""
    flat = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return flat.copy_(x.detach()).view(-1)


class Scratch:
    """Memory to receive into: it grows to what a round needs, and the next round uses it again."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[torch.dtype, torch.device], Tensor] = {}

    def pieces(self, like: Tensor, lengths: Sequence[int]) -> Sequence[Tensor]:
        """A buffer of each length, of the dtype and on the device of `like`; they last until the next call."""
        kind, total = (like.dtype, like.device), sum(lengths)
        if kind not in self._buffers or total > self._buffers[kind].numel():
            with torch.inference_mode(False):  # units differ by one element: room for the longest ones at once
                self._buffers[kind] = like.new_empty(total + len(lengths))
        return self._buffers[kind][:total].split_with_sizes(list(lengths))


class Machine:
    """One rank's end of a schedule over `flat`, a dense tensor in `cut` units."""

    def __init__(self, comm: Comm, flat: Tensor, cut: int, scratch: Scratch | None = None) -> None:
        self.comm, self.cut, self.device = comm, cut, flat.device
        self.flat = _ordinary(flat.detach()).view(-1)
        self.scratch = Scratch() if scratch is None else scratch

    def run(self, actions: Sequence[Action]) -> None:
        """One exchange, over on return."""
        full = [a for a in actions if self.part(a).numel()]
        sends = [(self.part(a), a.peer) for a in full if a.op is Op.SEND]
        takes = [a for a in full if a.op is not Op.SEND]
        landing = self._landing(takes, full)
        if full:
            self.comm.exchange(sends, [(came, a.peer) for a, came in zip(takes, landing)])
        for a, came in zip(takes, landing):
            if a.op is Op.ADD:
                self.part(a).add_(came)
            elif came.data_ptr() != self.part(a).data_ptr():
                self.part(a).copy_(came)

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

    def _landing(self, takes: Sequence[Action], round_: Sequence[Action]) -> list[Tensor]:
        """Where each of `takes` lands: in its place, if it is kept and its round has no other use for that place."""
        straight = [a.op is Op.COPY and not any(_overlap(a, b) for b in round_ if b is not a) for a in takes]
        lengths = [self.part(a).numel() for a, goes in zip(takes, straight) if not goes]
        pieces = iter(self.scratch.pieces(self.flat, lengths))
        return [self.part(a) if goes else next(pieces) for a, goes in zip(takes, straight)]


def _overlap(a: Action, b: Action) -> bool:
    return a.unit < b.unit + b.count and b.unit < a.unit + a.count


def _ordinary(x: Tensor) -> Tensor:
    """The same storage as a tensor that any thread may write: one made under `torch.inference_mode` is not."""
    if not x.is_inference():
        return x
    with torch.inference_mode(False):
        alias = torch.empty(0, dtype=x.dtype, device=x.device)
        return alias.set_(x.untyped_storage(), x.storage_offset(), x.shape, x.stride())
