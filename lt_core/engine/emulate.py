"""A machine whose device is as slow as a price list says, so that two cores can show what a row of devices would do.

run(F)      |computed|.... the emulated device is at it ....|     wait() of its Work ends here, and not before
run(SEND)   |a real message, in its real time|

Tensors, messages and gradients are real; computation is lengthened and never shortened. Nothing here knows when an
action should start: that comes about as on real devices, from what it waited for.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from lt_core.base.action import Action
from lt_core.base.costs import Costs, sizes
from lt_core.base.errors import Aborted, UserError
from lt_core.base.trace import Trace
from lt_core.base.work import Over, Work
from lt_core.engine.execute import Machine
from lt_core.engine.streams import streams_of

if TYPE_CHECKING:
    import torch


class DeviceClock:
    """When an emulated device is free again: one thing runs on it at a time, so machines that share it take turns.

    The host wakes up a little late from each wait, which the device would not: what it is asked to do right after a
    wait starts when that wait should have ended, so that lateness does not add up.
    """

    def __init__(self) -> None:
        self.free_s = 0.0
        self._late_s = 0.0

    def book(self, seconds: float) -> Over:
        """From when to when it works on something of that length which is begun now."""
        start_s = max(self.free_s, perf_counter() - self._late_s)
        self.free_s, self._late_s = start_s + seconds, 0.0
        return Over(start_s, self.free_s)

    def woke(self, due_s: float) -> None:
        """The host has just woken up from a wait until `due_s`."""
        self._late_s = perf_counter() - due_s


def emulate(machine: Machine, costs: Costs, scale: float, device: DeviceClock | None = None) -> Emulated:
    """The same machine, on which a computation lasts `costs.seconds(action) * scale` real seconds, or longer.

    scale: how many real seconds an emulated one lasts; 0.01 shows 100 emulated seconds in one.  device: the clock of
    the device, where several machines share one. The trace that `execute` makes is in real seconds: see `emulated`.
    """
    if not scale > 0:
        raise UserError(f"an emulated second cannot last {scale:g} s", expected="more than 0", attempt="scale=0.01")
    return Emulated(machine, costs, scale, device or DeviceClock())


def emulated(trace: Trace, scale: float) -> Trace:
    """The trace of an emulated machine in emulated seconds, whose `clock` says so: "emulated x0.01"."""
    return replace(
        trace,
        spans=[s._replace(start_s=s.start_s / scale, end_s=s.end_s / scale) for s in trace.spans],
        levels=[x._replace(at_s=x.at_s / scale) for x in trace.levels],
        marks=[m._replace(at_s=m.at_s / scale) for m in trace.marks],
        clock=f"emulated x{scale:g}",
    )


class Emulated:
    """The machine that `emulate` makes."""

    def __init__(self, machine: Machine, costs: Costs, scale: float, clock: DeviceClock) -> None:
        self.machine, self.costs, self.scale, self.clock = machine, costs, scale, clock
        self.aborted = threading.Event()
        self.nbytes, self.streams = sizes(machine), streams_of(self.device)

    @property
    def device(self) -> torch.device | None:
        """Where the real machine works."""
        device: torch.device | None = getattr(self.machine, "device", None)
        return device

    def run(self, actions: Sequence[Action]) -> Work | None:
        """Computed at once; its Work is over when the emulated device would be done. All else is the machine's own."""
        if actions[0].op.stream != "compute":
            return self.machine.run(actions)
        booked = self.clock.book(self.scale * sum(self.costs.seconds(a) for a in actions))
        return Lengthened(self, self.streams.issue(partial(self.machine.run, actions)), booked)

    def abort(self, reason: str) -> None:
        """Waits for the emulated device end too."""
        self.aborted.set()
        self.machine.abort(reason)


class Lengthened:
    """The Work of a computation on the emulated device."""

    def __init__(self, machine: Emulated, work: Work, booked: Over) -> None:
        self.machine, self.work, self.booked = machine, work, booked

    def wait(self) -> None:
        """Until the real computation is over, and the emulated one."""
        self.work.wait()
        left_s = self.booked.end_s - perf_counter()
        if left_s > 0:
            if self.machine.aborted.wait(left_s):
                raise Aborted("the emulated device was stopped")
            self.machine.clock.woke(self.booked.end_s)

    def span(self) -> tuple[float, float]:
        """(start, end) on the emulated device, in real seconds; the real end, where that came later."""
        return self.booked.start_s, max(self.booked.end_s, self.work.span()[1])
