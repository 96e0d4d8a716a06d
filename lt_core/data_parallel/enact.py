"""Do what a policy decides: on real ranks, as they ask for it, or once more in one process, in the order on record.

enact    asked.next -> an action -> computed, sent or received -> asked.done     each real rank, until None
replay   action after action of a schedule                                      one process: the same bits

Both hand the same actions to the same sides; only who carries the messages differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Protocol

import torch
from torch import Tensor

from lt_core.base.action import Action
from lt_core.base.costs import Costs, sizes
from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Span, Trace
from lt_core.base.work import Work
from lt_core.comm.comm import Comm
from lt_core.data_parallel.alike import Alike
from lt_core.engine.emulate import emulate, emulated
from lt_core.engine.execute import Machine


class Side(Protocol):
    """One rank's tensors: what it does for an action, whoever carries its messages, which are vectors (n,)."""

    @property
    def lines(self) -> Sequence[str]:
        """What it trains, in lines: the same on all ranks."""
        ...

    def compute(self, a: Action) -> None:
        """Do what is no message."""
        ...

    def give(self, a: Action) -> Tensor:
        """What a SEND sends."""
        ...

    def room(self, a: Action) -> Tensor:
        """Memory for what an ADD or a COPY receives."""
        ...

    def take(self, a: Action, message: Tensor) -> None:
        """It has come."""
        ...


class Asked(Protocol):
    """Who decides: a `Referee`, or its stand-in on a rank that is a process."""

    def next(self, rank: int) -> Action | None:
        """What the rank does now; None when it is over."""
        ...

    def done(self, action: Action) -> None:
        """It is over."""
        ...

    def abort(self, reason: str) -> None:
        """Everybody who asks or waits raises."""
        ...


class OnRank:
    """A side with a communicator under it, as a machine for `emulate` and `execute`. alike: compares with each peer."""

    def __init__(self, side: Side, comm: Comm, alike: Alike | None = None) -> None:
        self.side, self.comm, self.device, self._alike = side, comm, comm.device, alike
        self._sizes: dict[Action, int] = {}

    def run(self, actions: Sequence[Action]) -> None:
        """One action, over on return."""
        for a in actions:
            if a.peer >= 0 and self._alike:
                self._alike.meet(a.peer, a.op.stream == "out")
            if a.peer < 0:
                self.side.compute(a)
            elif a.op.stream == "out":
                message = self.side.give(a)
                self._sizes[a] = message.nbytes
                self.comm.exchange([(message, a.peer)], [])
            else:
                message = self.side.room(a)
                self._sizes[a] = message.nbytes
                self.comm.exchange([], [(message, a.peer)])
                self.side.take(a, message)

    def abort(self, reason: str) -> None:
        """Whoever waits for this rank is freed."""
        self.comm.abort(reason)

    def nbytes(self, a: Action) -> int:
        """What it moved; 0 for a computation."""
        return self._sizes.pop(a, 0)


def enact(name: str, asked: Asked, side: Side, comm: Comm, costs: Costs | None = None, scale: float = 0.01) -> Trace:
    """Ask and do until it is over: a trace of that name, a span an action. The first error frees all ranks.

    costs: emulate devices of this speed, an emulated second lasting `scale` real ones.
    Errors: `Mismatch` where two ranks train different models; the side's, named by its rank; the referee's `Deadline`,
    which names who is waited for; and `Aborted`, in the same words, on the other ranks.
    """
    machine, trace = OnRank(side, comm, Alike(comm, side.lines)), Trace(name, backend=comm.backend)
    if costs is None:
        _ask_and_do(asked, comm.rank, machine, trace)
        return trace
    _ask_and_do(asked, comm.rank, emulate(machine, costs, scale), trace)
    return emulated(trace, scale)


def _ask_and_do(asked: Asked, rank: int, machine: Machine, trace: Trace) -> None:
    nbytes = sizes(machine)
    try:
        while (a := asked.next(rank)) is not None:
            start_s = perf_counter()
            work: Work | None = machine.run((a,))
            if work is not None:
                work.wait()
            trace.spans.append(Span(rank, a.op.stream, str(a), start_s, perf_counter(), nbytes(a), a))
            asked.done(a)
    except BaseException as error:
        reason = f"rank {rank} failed first: {type(error).__name__}: {error}"
        asked.abort(reason)
        machine.abort(reason)
        raise


def replay(schedule: Schedule, sides: Sequence[Side], watch: Callable[[Action], None] = lambda a: None) -> None:
    """The schedule's actions in the order on record (of its `needs`), by `sides` of one process.

    watch: called after each action. Errors: a schedule for other ranks.
    """
    if len(sides) != schedule.size:
        raise UserError(f"{schedule.name} cannot be replayed", f"{len(sides)} sides", f"{schedule.size}, one a rank")
    half: dict[object, Action] = {}  # transfers of which one end was seen; they are over for both at once
    with torch.enable_grad():
        for a in schedule.needs:
            if a.peer < 0:
                sides[a.rank].compute(a)
            elif (other := half.pop(a.transfer, None)) is None:
                half[a.transfer] = a
            else:
                out, into = (a, other) if a.op.stream == "out" else (other, a)
                sides[into.rank].take(into, sides[out.rank].give(out))
            watch(a)
