"""The graph: one task a transfer, edges by need and stream order, and a circle that anyone can follow."""

import itertools
import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lt_core.base.action import Action
from lt_core.base.graph import NEVER, circle, graph, order, ticks
from lt_core.base.schedule import Schedule
from tests.typed import gpipe, typed


def text(g, i):
    return "+".join(map(str, g.tasks[i]))


def edges(g):
    return {(text(g, i), text(g, j)) for i in range(len(g.tasks)) for j in g.after[i]}


def test_a_transfer_is_one_task_with_two_ends_the_sender_first():
    g = typed("0: 0COPY_B0<1 0F0\n1: 0SEND_B0>0").tasks
    assert [text(g, i) for i in range(len(g.tasks))] == ["0F0", "0SEND_B0>0+0COPY_B0<1"]


def test_edges_are_needs_and_the_order_of_streams():
    drawing = "0: 0F0 0SEND_F0>1 0F1 0SEND_F1>1\n1: 0COPY_F0<0 1F0 0COPY_F1<0"
    g = typed(drawing, {"0SEND_F0>1": "0F0", "1F0": "0COPY_F0<0", "0SEND_F1>1": "0F1"}).tasks
    first, second = "0SEND_F0>1+0COPY_F0<0", "0SEND_F1>1+0COPY_F1<0"
    assert edges(g) == {("0F0", "0F1"), ("0F0", first), ("0F1", second), (first, "1F0"), (first, second)}


def test_free_stands_in_no_order():
    g = typed("0: 0F0 0DROP0 0F1 1DROP0 1F0", {"0DROP0": "0F1"}).tasks
    assert edges(g) == {("0F0", "0F1"), ("0F1", "1F0"), ("0F1", "0DROP0")}
    assert ticks(g)[g.tasks[g.number[Action.parse("1DROP0", 0)]][0]] == 0


def test_what_is_in_no_lane_never_comes():
    missing = Action.parse("9F9", 0)
    lanes = [[Action.parse("0F0", 0), Action.parse("1F0", 0), Action.parse("0SEND0>1", 0)]]
    g = graph(lanes, {lanes[0][0]: (missing,)})
    assert [text(g, i) for i in g.after[NEVER]] == ["0SEND0>1", "0F0"]
    assert order(g) == [] and ticks(g) == {}


@given(st.randoms(use_true_random=False))
def test_the_order_of_the_lanes_does_not_matter(rng):
    s = gpipe(3, 3)
    lanes = list(s.lanes)
    rng.shuffle(lanes)
    g, h = s.tasks, Schedule("shuffled", tuple(lanes), s.needs).tasks
    assert (g.tasks, g.number, g.after, g.waits) == (h.tasks, h.number, h.after, h.waits)


@given(st.integers(1, 4), st.integers(1, 4))
def test_ticks_are_the_longest_way(stages, batches):
    s = gpipe(stages, batches)
    g = s.tasks
    tick = ticks(g)
    before = {j: [i for i in range(len(g.tasks)) if j in g.after[i]] for j in range(len(g.tasks))}

    @cache
    def longest(j):
        return max((longest(i) + 1 for i in before[j]), default=0)

    assert {a: longest(g.number[a]) for a in s.actions()} == tick


def waits_for(s, a, b):
    """Whether b is a need of a, stands just before it in its stream, or is its other end."""
    stream = [x for x in s.lanes[a.rank] if x.op.stream == a.op.stream]
    before = dict(zip(stream[1:], stream))
    return b in s.needs.get(a, ()) or before.get(a) == b or (a != b and a.peer >= 0 and a.transfer == b.transfer)


@pytest.mark.parametrize(
    ("drawing", "needs", "path"),
    [
        ("0: 0F0", {"0F0": "0F0"}, "0F0 0F0"),
        ("0: 0F0\n1: 1F0", {"0F0": "1F0", "1F0": "0F0"}, "0F0 1F0 0F0"),
        (
            "0: 0SEND_F0>1 0SEND_F1>1\n1: 0COPY_F1<0 0COPY_F0<0",
            {},
            "0SEND_F0>1 0COPY_F0<0 0COPY_F1<0 0SEND_F1>1 0SEND_F0>1",
        ),
        (
            "0: 1COPY_B0<1 0SEND_F0>1\n1: 0COPY_F0<0 1SEND_B0>0",
            {"0SEND_F0>1": "1COPY_B0<1", "1SEND_B0>0": "0COPY_F0<0"},
            "0SEND_F0>1 1COPY_B0<1 1SEND_B0>0 0COPY_F0<0 0SEND_F0>1",
        ),
    ],
)
def test_a_circle_is_told_from_action_to_action(drawing, needs, path):
    assert " ".join(map(str, circle(typed(drawing, needs).tasks))) == path


@given(st.integers(0, 10**6), st.integers(2, 4), st.integers(2, 4))
def test_every_step_of_a_circle_is_a_wait(seed, stages, batches):
    s, rng = gpipe(stages, batches), random.Random(seed)
    lanes = [list(lane) for lane in s.lanes]
    for lane in lanes:  # a few swaps make most orders circular
        for _ in range(3):
            i, j = rng.randrange(len(lane)), rng.randrange(len(lane))
            lane[i], lane[j] = lane[j], lane[i]
    s = Schedule("swapped", tuple(map(tuple, lanes)), s.needs)
    if len(order(s.tasks)) == len(s.tasks.tasks):
        assert s.check() is s
        return
    path = circle(s.tasks)
    assert path[0] == path[-1] and len(set(path)) == len(path) - 1
    assert all(waits_for(s, a, b) for a, b in itertools.pairwise(path))
    stuck = set(s.actions()) - set(ticks(s.tasks))
    assert set(path) <= stuck
