"""The one machine that runs every collective: it cuts a tensor in units, sends them, and adds or keeps what comes.

    all_reduce(comm, x, schedule)            the sum, in a new tensor
    run(comm, flat, schedule)                any collective, in place
    Prepared(comm, flat, schedule)           the same, to be called again and again

Unit i of p of n elements is [n i // p, n (i + 1) // p). A message without elements is not sent, and both ends know it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from lt_core.base.action import Action
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Trace
from lt_core.base.units import bounds
from lt_core.collectives.buffers import Scratch, copied, ordinary
from lt_core.collectives.checks import check, units
from lt_core.collectives.exchange import Exchange, exchange
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
    Prepared(comm, flat, schedule, cut, scratch)(trace, watch)


class Prepared:
    """A collective over one buffer, made ready once and called many times: `ring_sum = Prepared(comm, flat, schedule)`.

    What a loop over the same buckets uses; MPI calls it a persistent collective. Arguments and errors: those of `run`.
    """

    def __init__(
        self, comm: Comm, flat: Tensor, schedule: Schedule, cut: int = 0, scratch: Scratch | None = None
    ) -> None:
        check(comm, flat, schedule, cut)
        self.schedule, self._exchanges = schedule, schedule.exchanges(comm.rank)
        self._in_turn = _in_turn(schedule, comm.rank, self._exchanges)
        self.machine = Machine(comm, flat, cut or units(schedule), self._exchanges, self._in_turn, scratch)

    def __call__(self, trace: Trace | None = None, watch: Watch | None = None) -> None:
        """Run it, in place."""
        machine = self.machine
        if trace is None and watch is None and self._in_turn:
            _run_in_turn(machine, self._exchanges)
            return
        trace = trace if trace is not None else Trace(self.schedule.name)
        watched = Watched(machine, watch, trace) if watch else machine
        execute(self.schedule, machine.comm.rank, watched, trace, machine.comm.timeout_s)


class Machine:
    """One rank's end of a schedule over `flat`, a dense tensor in `cut` units: it can run the exchanges of its lane.

    in_turn: whether no two of them ever run at once, so that they may receive into the same memory.
    """

    def __init__(
        self,
        comm: Comm,
        flat: Tensor,
        cut: int,
        exchanges: Iterable[tuple[Action, ...]],
        in_turn: bool,
        scratch: Scratch | None = None,
    ) -> None:
        self.comm, self.cut, self.device = comm, cut, flat.device
        self.flat = ordinary(flat.detach()).view(-1)
        self._exchanges: dict[tuple[Action, ...], Exchange] = {}
        memory = Scratch() if scratch is None else scratch
        memory.clear()
        with torch.inference_mode(False):  # so that they serve in any mode
            for actions in exchanges:
                self._exchanges[actions] = exchange(actions, self.part, memory)
                if in_turn:
                    memory.clear()

    def run(self, actions: Sequence[Action]) -> None:
        """One exchange, over on return."""
        sends, receives, after = self._exchanges[tuple(actions)]
        if sends or receives:
            self.comm.exchange(sends, receives)
        for settle, place, came in after:
            settle(place, came)

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
