"""What a run leaves behind for whoever steps through it: a rank's chunks at the start and after each of its exchanges.

all_reduce(comm, x, ring.schedule(comm.size), trace, watch=chunk_table)

marks of rank 1    start    0: 1    1: 10   2: 100   3: 1000
                   round 0  0: 3    1: 10   2: 100   3: 1000      0ADD0<0, 1SEND0>2
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from lt_core.base.action import Action, Op
from lt_core.base.records import JSON, Mark
from lt_core.base.trace import Trace

if TYPE_CHECKING:
    from lt_core.collectives.machine import Machine

__all__ = ["Watch", "Watched", "chunk_table"]

KEPT = 8  # elements of a chunk that are written down: a picture has no room for more
Watch = Callable[["Machine", Sequence[Action]], Mark]


class Watched:
    """A machine that leaves in `trace` what `watch(machine, actions)` makes of it: once before anything moves, with no
    actions, and once after each exchange, with that exchange's."""

    def __init__(self, machine: Machine, watch: Watch, trace: Trace) -> None:
        self.machine, self.watch, self.trace = machine, watch, trace
        self.device, self.abort, self.nbytes = machine.device, machine.abort, machine.nbytes
        trace.marks.append(watch(machine, ()))

    def run(self, actions: Sequence[Action]) -> None:
        """One exchange, over on return, and its mark."""
        self.machine.run(actions)
        self.trace.marks.append(self.watch(self.machine, actions))


def chunk_table(machine: Machine, actions: Sequence[Action]) -> Mark:
    """The rank's chunks as they are now, as a Mark "chunk table".

    Its value: "round" (-1 at the start), "actions" that moved elements, "elements" of the whole tensor, and "table":
    of each chunk the first 8 elements.
    """
    moved: list[JSON] = [str(a) for a in actions if machine.part(a).numel()]
    cuts = [machine.part(Action(Op.SEND, unit)) for unit in range(machine.cut)]
    table: list[JSON] = [cut[:KEPT].tolist() for cut in cuts]
    number = actions[0].batch if actions else -1
    value: dict[str, JSON] = {"round": number, "actions": moved, "elements": machine.flat.numel(), "table": table}
    return Mark(machine.comm.rank, perf_counter(), "chunk table", value)
