"""Who waits for whom: the one graph which check, grid, simulate and execute read.

A node is a task: an action, or the two ends of one transfer. An edge is a need, or the order of a stream on a rank.
Actions on the stream `free` stand in no order: they take no time and hold up nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lt_core.base.action import Action

Lanes = Sequence[Sequence[Action]]
Needs = Mapping[Action, tuple[Action, ...]]


class Graph(NamedTuple):
    """tasks[i]: its actions, the sender first.  place[i]: (rank, place in its lane) of the first.  after[i]: the tasks
    that wait for i.  waits[i]: for how many i waits.  number: the task of each action."""

    tasks: list[tuple[Action, ...]]
    place: list[tuple[int, int]]
    after: list[list[int]]
    waits: list[int]
    number: dict[Action, int]


def graph(lanes: Lanes, needs: Needs) -> Graph:
    """The graph of a schedule; needs which are in no lane are left out (`Schedule.check` names them)."""
    tasks, place, number = _tasks(lanes)
    after: list[list[int]] = [[] for _ in tasks]
    waits = [0] * len(tasks)
    for lane in lanes:
        before: dict[str, int] = {}
        for a in lane:
            i, stream = number[a], a.op.stream
            sources = {number[n] for n in needs.get(a, ()) if n in number}
            if stream != "free":
                if stream in before:
                    sources.add(before[stream])
                before[stream] = i
            for j in sources:
                after[j].append(i)
            waits[i] += len(sources)
    return Graph(tasks, place, after, waits, number)


def _tasks(lanes: Lanes) -> tuple[list[tuple[Action, ...]], list[tuple[int, int]], dict[Action, int]]:
    tasks: list[tuple[Action, ...]] = []
    place: list[tuple[int, int]] = []
    number: dict[Action, int] = {}
    half: dict[tuple[int, int, int, int, str], int] = {}
    for lane in lanes:
        for k, a in enumerate(lane):
            i = half.pop(a.transfer, -1) if a.peer >= 0 else -1
            if i < 0 or tasks[i][0].op.stream == a.op.stream:  # alone, the first end, or a twin
                number[a] = len(tasks)
                tasks.append((a,))
                place.append((a.rank, k))
                if a.peer >= 0:
                    half[a.transfer] = number[a]
            else:
                number[a] = i
                if a.op.stream == "out":
                    tasks[i], place[i] = (a, *tasks[i]), (a.rank, k)
                else:
                    tasks[i] = (*tasks[i], a)
    return tasks, place, number


def ticks(g: Graph) -> dict[Action, int]:
    """The earliest tick of each action when each takes one; what can never start has none."""
    waits, tick = list(g.waits), [0] * len(g.tasks)
    order = [i for i, n in enumerate(waits) if not n]
    for i in order:
        for j in g.after[i]:
            waits[j] -= 1
            tick[j] = max(tick[j], tick[i] + 1)
            if not waits[j]:
                order.append(j)
    return {a: tick[i] for i in order for a in g.tasks[i]}


def circle(g: Graph) -> list[Action]:
    """Who waits for whom among the tasks that can never start, until it closes: [a, b, ..., a]."""
    stuck = {g.number[a] for task in g.tasks for a in task} - {g.number[a] for a in ticks(g)}
    source = {j: i for i in stuck for j in g.after[i] if j in stuck}  # each stuck task waits for a stuck one
    path = [min(stuck, key=lambda i: g.place[i])]
    while source[path[-1]] not in path:
        path.append(source[path[-1]])
    closed = [*path[path.index(source[path[-1]]) :], source[path[-1]]]
    return [g.tasks[i][0] for i in closed]
