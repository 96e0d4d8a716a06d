"""Who waits for whom: the one graph which check, grid, simulate and execute read.

A node is a task: an action, or the two ends of one transfer. An edge is a need, or the order of a stream on a rank.
Actions on the stream `free` stand in no order: they take no time and hold up nobody.
Tasks are numbered by rank, then place in the lane (of a transfer: the sender's), so the smaller goes first in ties.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lt_core.base.action import Action
from lt_core.base.collector import collector_paused

Lanes = Sequence[Sequence[Action]]
Needs = Mapping[Action, tuple[Action, ...]]


NEVER = -1  # the task which stands for all that is in no lane


class Graph(NamedTuple):
    """tasks[i]: its actions, the sender first.  number: the task of each action.  after[i]: the tasks that wait for i.
    waits[i]: for how many i waits.  after[NEVER]: those that need, or are the other end of, what is in no lane."""

    lanes: Lanes
    needs: Needs
    tasks: list[tuple[Action, ...]]
    number: dict[Action, int]
    after: list[list[int]]
    waits: list[int]


@collector_paused()
def graph(lanes: Lanes, needs: Needs) -> Graph:
    """The graph of a schedule, right or wrong: `Schedule.check` names what is wrong with it."""
    lanes = sorted(filter(None, lanes), key=lambda lane: lane[0].rank)
    tasks, number = _tasks(lanes)
    after: list[list[int]] = [[] for _ in range(len(tasks) + 1)]
    waits = [0] * len(tasks)
    for i, task in enumerate(tasks):
        if len(task) == 1 and task[0].peer >= 0:
            after[NEVER].append(i)
            waits[i] += 1
    for lane in lanes:
        _join(lane, needs, number, after, waits)
    return Graph(lanes, needs, tasks, number, after, waits)


def _tasks(lanes: Lanes) -> tuple[list[tuple[Action, ...]], dict[Action, int]]:
    tasks: list[tuple[Action, ...]] = []
    number: dict[Action, int] = {}
    sent: dict[tuple[int, int, int, int, str], int] = {}
    takes: list[Action] = []
    for lane in lanes:
        for a in lane:
            if a.peer >= 0:
                if a.op.stream == "in":
                    takes.append(a)
                    continue
                sent[a.transfer] = len(tasks)
            number[a] = len(tasks)
            tasks.append((a,))
    for a in takes:
        i = number[a] = sent.pop(a.transfer, len(tasks))
        if i < len(tasks):
            tasks[i] = (*tasks[i], a)
        else:  # what it takes is sent nowhere, or was taken
            tasks.append((a,))
    return tasks, number


def _join(
    lane: Sequence[Action], needs: Needs, number: dict[Action, int], after: list[list[int]], waits: list[int]
) -> None:
    """Add the edges into the actions of one lane."""
    before: dict[str, int] = {}
    last: tuple[Action, ...] = ()
    sources: set[int] = set()
    for a in lane:
        i, stream, wanted = number[a], a.op.stream, needs.get(a, ())
        if wanted is not last:  # the actions of an exchange share theirs
            last, sources = wanted, {number.get(n, NEVER) for n in wanted}
        for j in sources:
            after[j].append(i)
        waits[i] += len(sources)
        if stream != "free":
            j = before.get(stream, i)
            if j != i and j not in sources:
                after[j].append(i)
                waits[i] += 1
            before[stream] = i


def order(g: Graph) -> list[int]:
    """The tasks that can start, none before what it waits for; what can never start is left out."""
    waits = list(g.waits)
    ready = [i for i, n in enumerate(waits) if not n]
    for i in ready:
        for j in g.after[i]:
            waits[j] -= 1
            if not waits[j]:
                ready.append(j)
    return ready


def ticks(g: Graph) -> dict[Action, int]:
    """The earliest tick of each action when each takes one; what can never start has none."""
    tick = [0] * len(g.tasks)
    ready = order(g)
    for i in ready:
        for j in g.after[i]:
            tick[j] = max(tick[j], tick[i] + 1)
    return {a: tick[i] for i in ready for a in g.tasks[i]}


def circle(g: Graph) -> list[Action]:
    """[a, b, ..., a]: each waits for the next: its need, what stands before it in its stream, or its other end."""
    stuck = set(range(len(g.tasks))) - set(order(g))
    before: dict[Action, Action] = {}
    for lane in g.lanes:
        last: dict[str, Action] = {}
        for a in lane:
            if a.op.stream in last:
                before[a] = last[a.op.stream]
            if a.op.stream != "free":
                last[a.op.stream] = a

    def holds(a: Action) -> Action:
        sources = [*g.needs.get(a, ()), *([before[a]] if a in before else [])]
        others = [b for b in g.tasks[g.number[a]] if b != a]
        return next(b for b in [*sources, *others] if g.number.get(b) in stuck)

    path = [g.tasks[min(stuck)][0]]
    while (a := holds(path[-1])) not in path:
        path.append(a)
    return [*path[path.index(a) :], a]
