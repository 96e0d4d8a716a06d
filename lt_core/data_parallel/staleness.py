"""Who used which version of the weights: read off what happened, whoever decided it and whatever carried it.

server   SEND(v3) ............ ADD U          its gradient went into version 7: read 3, written 7,
worker         COPY F SEND --^                so it was 7 - 1 - 3 = 3 updates old

A version is the number of updates before it. Conservation: every gradient produced is applied once, or dropped and
counted, or still on its way; nothing else can have become of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from lt_core.base.action import Action, Op
from lt_core.base.schedule import Schedule
from lt_core.base.trace import JSON, Mark, Trace

KIND = "staleness"  # of the marks


class Use(NamedTuple):
    """A gradient's way: of which worker and clock, at which server, the version read, and the version it made.

    version: the newest once that was decided.  written: the same, or None where the server dropped the gradient.
    at: the U or the COPY that decided it.
    """

    rank: int
    clock: int
    server: int
    read: int
    version: int
    written: int | None
    at: Action

    @property
    def stale(self) -> int | None:
        """How many updates came between reading and applying; None where it was dropped."""
        return None if self.written is None else self.written - 1 - self.read


class Balance(NamedTuple):
    """What became of the gradients that were computed."""

    produced: int
    applied: int
    dropped: int
    underway: int

    @property
    def met(self) -> bool:
        """Whether none was lost or counted twice."""
        return self.produced == self.applied + self.dropped + self.underway


def uses(lanes: Iterable[Sequence[Action]]) -> list[Use]:
    """Every gradient that came to a server, server by server, in the order in which they were decided."""
    servers = [lane for lane in lanes if lane and lane[0].op is Op.SEND]  # a worker begins by reading
    return [use for lane in servers for use in _of_server(lane)]


def _of_server(lane: Sequence[Action]) -> Iterator[Use]:
    """One server's: what it sends is its version then; an update applies all that was added since the one before."""
    version, read, held = 0, dict[int, int](), list[Action]()
    for a in lane:
        if a.op is Op.SEND:
            read[a.peer] = version
        elif a.op is Op.ADD:
            held.append(a._replace(unit=read.get(a.peer, 0)))
        elif a.op is Op.COPY:
            yield Use(a.peer, a.batch, a.rank, read.get(a.peer, 0), version, None, a)
        elif a.op is Op.U:
            version += 1
            yield from (Use(h.peer, h.batch, a.rank, h.unit, version, version, a) for h in held)
            held.clear()


def balance(schedule: Schedule, server: int, push_every: int = 1) -> Balance:
    """What became of all gradients, as server `server` (a rank) sees it; a message holds `push_every` of them."""
    mine = uses([schedule.lanes[server]])
    carried = [[(u.rank, u.clock - k) for k in range(push_every)] for u in mine]
    applied = [one for u, ones in zip(mine, carried) if u.written is not None for one in ones]
    dropped = [one for u, ones in zip(mine, carried) if u.written is None for one in ones]
    produced = {(a.rank, a.batch) for a in schedule.actions() if a.op is Op.F}
    known = len(produced & {*applied, *dropped})
    return Balance(len(produced), len(applied), len(dropped), len(produced) - known)


def marked(trace: Trace, uses_of: Callable[[Iterable[Sequence[Action]]], list[Use]] = uses) -> Trace:
    """The trace with a mark for each gradient, at the moment when it was applied or dropped: {"clock", "server",
    "read", "version", "written"}, written null where it was dropped. uses_of: `p_reduce.uses` for P-Reduce."""
    lanes: dict[int, list[Action]] = {}
    ends: dict[Action, float] = {}
    for s in sorted(trace.spans, key=lambda s: (s.start_s, s.end_s)):
        if s.action is not None:
            lanes.setdefault(s.rank, []).append(s.action)
            ends[s.action] = s.end_s
    marks = [Mark(u.rank, ends[u.at], KIND, value(u)) for u in uses_of(lanes.values())]
    return replace(trace, marks=[*trace.marks, *sorted(marks, key=lambda m: (m.at_s, m.rank))])


def value(use: Use) -> dict[str, JSON]:
    """What a mark says of a gradient."""
    return {
        "clock": use.clock,
        "server": use.server,
        "read": use.read,
        "version": use.version,
        "written": use.written,
    }
