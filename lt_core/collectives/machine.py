"""The one machine that runs every collective: it cuts a tensor in units, sends them, and adds or keeps what comes.

    SEND   flat[unit] ---> peer
    ADD    scratch    <--- peer, then flat[unit] += scratch      one scratch for all rounds
    COPY   flat[unit] <--- peer                                  no detour, unless its round has another use for it

Unit i of p of n elements is [n i // p, n (i + 1) // p). A message without elements is not sent, and both ends know it.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from lt_core.base.action import Action, Op
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Trace
from lt_core.base.units import bounds
from lt_core.collectives.buffers import Scratch, copied, ordinary
from lt_core.collectives.checks import check, units
from lt_core.collectives.watch import Watch, Watched
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
    check(comm, flat, schedule, cut)
    machine = Machine(comm, flat, cut or units(schedule), scratch)
    exchanges = schedule.exchanges(comm.rank)
    if trace is None and watch is None and _in_turn(schedule, comm.rank, exchanges):
        _run_in_turn(machine, exchanges)
        return
    trace = trace if trace is not None else Trace(schedule.name)
    execute(schedule, comm.rank, Watched(machine, watch, trace) if watch else machine, trace, comm.timeout_s)


class Machine:
    """One rank's end of a schedule over `flat`, a dense tensor in `cut` units."""

    def __init__(self, comm: Comm, flat: Tensor, cut: int, scratch: Scratch | None = None) -> None:
        self.comm, self.cut, self.device = comm, cut, flat.device
        self.flat = ordinary(flat.detach()).view(-1)
        self.scratch = Scratch() if scratch is None else scratch

    def run(self, actions: Sequence[Action]) -> None:
        """One exchange, over on return."""
        self.scratch.clear()
        moved = [(a, place) for a in actions if (place := self.part(a)).numel()]
        sends = [(place, a.peer) for a, place in moved if a.op is Op.SEND]
        takes = [(a, place, self._landing(a, place, actions)) for a, place in moved if a.op is not Op.SEND]
        if moved:
            self.comm.exchange(sends, [(came, a.peer) for a, _, came in takes])
        for a, place, came in takes:
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
        low, high = bounds(self.flat.numel(), action.unit, self.cut, action.count)
        return (high - low) * self.flat.itemsize

    def _landing(self, take: Action, place: Tensor, actions: Sequence[Action]) -> Tensor:
        """Where it lands: in its place, if it is kept and its round has no other use for that place."""
        if take.op is Op.COPY and not any(_overlap(take, a) for a in actions if a is not take):
            return place
        return self.scratch.piece(place)


def _in_turn(schedule: Schedule, rank: int, exchanges: Sequence[tuple[Action, ...]]) -> bool:
    """Whether the lane is sound and each exchange needs the one before, as in rounds: nothing runs beside another."""
    lane = schedule.lanes[rank]
    sound = len(set(lane)) == len(lane) and all(a.rank == rank for a in lane)
    return sound and all(schedule.needs.get(x[0], ()) == before for before, x in zip([(), *exchanges], exchanges))


def _run_in_turn(machine: Machine, exchanges: Sequence[tuple[Action, ...]]) -> None:
    """What `execute` would do, where nobody asks when: without workers and record, half a millisecond sooner."""
    try:
        for actions in exchanges:
            machine.run(actions)
    except BaseException as error:
        machine.abort(f"rank {machine.comm.rank}: {type(error).__name__}: {error}")
        raise


def _overlap(a: Action, b: Action) -> bool:
    return a.unit < b.unit + b.count and b.unit < a.unit + a.count
