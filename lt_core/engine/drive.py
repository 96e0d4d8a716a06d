"""Run a policy on a virtual clock; what happened is a schedule, which can be priced and drawn like any other.

time 0    ask 0 1 2         idle ranks are asked in order of rank, at the start and after each single end:
     1    0 ends, ask 0     two ends at one time are not one moment, for the first may change what the second's rank
     1    1 ends, ask 1     is given; a transfer starts when both its ends were given
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush

from lt_core.base.action import Action
from lt_core.base.costs import Costs
from lt_core.base.errors import UserError
from lt_core.base.policy import Policy
from lt_core.base.schedule import Schedule
from lt_core.engine.record import Record

END, START = 0, 1  # at one time ends come first
STANDSTILL = 1000  # this many ends a rank at one time, and the policy will go on for ever


def drive(policy: Policy, costs: Costs, until_s: float) -> Schedule:
    """What the policy makes the ranks do until `until_s`; what is not over by then did not happen.

    An action needs the last action that each rank had ended when it was given, so that `simulate` finds the same times.
    Errors: `UserError` where the policy gives a rank another's action or one twice, or gives actions that take no time
    without end.
    """
    record = Record(policy)
    half: dict[object, Action] = {}  # the first end of a transfer waits for the other
    free: dict[Hashable, float] = {}  # when what is shared is free again
    idle, now, same = set(range(policy.size)), 0.0, 0
    events: list[tuple[float, int, int, tuple[Action, ...]]] = []
    while True:
        for rank in sorted(idle):
            if (a := record.give(rank)) is not None:
                idle.remove(rank)
                if ends := _whole(a, half):
                    heappush(events, (now, START, ends[0].rank, ends))
        while events and events[0][1] == START:
            _start(events, costs, free)
        if not events or events[0][0] > until_s:
            return record.schedule()
        before, (now, _, rank, (a,)) = now, heappop(events)
        same = same + 1 if now == before else 0
        if same > STANDSTILL * policy.size:
            raise UserError(f"{type(policy).__name__} never gets past {now:g} s", attempt=f"give {a} seconds")
        idle.add(rank)
        record.end(a)


def _whole(a: Action, half: dict[object, Action]) -> tuple[Action, ...]:
    """The action, or both ends of its transfer, the sender first; nothing while the other end was not given."""
    if a.peer < 0:
        return (a,)
    other = half.pop(a.transfer, None)
    if other is None:
        half[a.transfer] = a
        return ()
    return (a, other) if a.op.stream == "out" else (other, a)


def _start(events: list[tuple[float, int, int, tuple[Action, ...]]], costs: Costs, free: dict[Hashable, float]) -> None:
    """The first event, a start: it starts, or where something shared is in use it will try again when that is free."""
    now, _, rank, ends = heappop(events)
    shared = costs.shared(ends[0])
    start = max([now, *(free.get(one, 0.0) for one in shared)])
    if start > now:
        heappush(events, (start, START, rank, ends))
        return
    end = now + sum([costs.seconds(a) for a in ends if a.op.stream != "free"])
    free.update(dict.fromkeys(shared, end))
    for a in ends:
        heappush(events, (end, END, a.rank, (a,)))
