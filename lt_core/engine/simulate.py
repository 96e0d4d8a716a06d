"""Price a schedule on a virtual clock; knows streams and transfers, and no technique.

Each stream of a rank runs its actions in lane order, one at a time; "free" takes no time. The two ends of a transfer
are one task: it starts when all before it in the sender's `out` and the receiver's `in`, and all needs of both, are
finished, lasts what its ends cost together, and holds what is shared (a node's NIC). What can start first does; ties
go by the sender's rank, then its place in the lane, so the order of the lanes never matters.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from heapq import heappop, heappush

from lt_core.base.collector import collector_paused
from lt_core.base.costs import Costs, sizes
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Level, Span, Trace


@collector_paused()
def simulate(schedule: Schedule, costs: Costs) -> Trace:
    """When each action of the schedule starts and ends, and the memory it holds, if everything takes what `costs` says.

    Errors: the `ScheduleError` of `schedule.check()`, if it cannot finish.
    """
    spans = _spans(schedule, costs)
    if not len(spans) == len(schedule.tasks.number) == sum(map(len, schedule.lanes)):
        schedule.check()  # says who waits for whom, or what occurs twice
    return Trace(schedule.name, spans, _levels(spans, costs), clock="simulated")


def _spans(schedule: Schedule, costs: Costs) -> list[Span]:
    graph, nbytes = schedule.tasks, sizes(costs)
    left = list(graph.waits)
    ready = [0.0] * len(left)  # when the last thing came for which the task waited
    free: dict[Hashable, float] = {}  # when what is shared is free again
    heap = [(0.0, i) for i, waits in enumerate(left) if not waits]
    spans: list[Span] = []
    while heap:
        now, i = heappop(heap)
        ends = graph.tasks[i]
        if shared := costs.shared(ends[0]):
            start = max(free.get(one, now) for one in shared)
            if start > now:  # it asks again when that is free
                heappush(heap, (start, i))
                continue
        end = now + sum([costs.seconds(a) for a in ends if a.op.stream != "free"])
        spans += [Span(a.rank, a.op.stream, str(a), now, end, nbytes(a), a) for a in ends]
        for one in shared:
            free[one] = end
        for j in graph.after[i]:
            left[j] -= 1
            if end > ready[j]:
                ready[j] = end
            if not left[j]:
                heappush(heap, (ready[j], j))
    return spans


def _levels(spans: list[Span], costs: Costs) -> list[Level]:
    """Frees before allocations: what changes on a rank at one moment is one level."""
    changes: dict[tuple[float, int], int] = defaultdict(int)
    for s in spans:
        assert s.action is not None
        kept, extra = costs.kept_bytes(s.action), costs.extra_bytes(s.action)
        if kept or extra:
            changes[s.start_s, s.rank] += extra + max(kept, 0)
            changes[s.end_s, s.rank] += min(kept, 0) - extra
    live: dict[int, int] = defaultdict(int)
    levels: list[Level] = []
    for (at_s, rank), change in sorted(changes.items()):
        live[rank] += change
        if change:
            levels.append(Level(rank, at_s, "activations", live[rank]))
    return levels
