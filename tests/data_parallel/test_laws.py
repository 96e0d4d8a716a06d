"""The laws of replicated models: what a step sends on real ranks, to the byte, and what it lasts in a simulation."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import pytest
import torch
from torch import nn

from lt_core.base.action import Action, Op
from lt_core.base.schedule import Schedule
from lt_core.collectives import Mean, ring
from lt_core.comm import laws
from lt_core.data_parallel import local_sgd
from lt_core.data_parallel.replicate import bucketed, naive, overlapped, step
from lt_core.engine.simulate import simulate
from tests import witnesses
from tests.witnesses import Sent

WIDTHS, BUCKET = [5, 7, 1, 3], 200
ELEMENTS = [35, 7, 7, 1, 3, 3]  # weight and bias of each layer


class Case(NamedTuple):
    """A way, and what it says that a rank sends in `steps` steps."""

    name: str
    module: str
    replicate: Callable
    law: Callable[[int, int], Sent]
    steps: int = 1

    def __str__(self):
        return self.name


def in_buckets(way):
    def law(size, rank):
        args = (size, ELEMENTS, 8, rank, BUCKET)
        return Sent(way.law_bytes(*args), way.law_messages(*args))

    return law


def one_by_one(size, rank):
    return Sent(naive.law_bytes(size, ELEMENTS, 8, rank), naive.law_messages(size, ELEMENTS, rank))


def with_buckets(way):
    return lambda model, comm: way.replicate(model, comm, Mean(ring.schedule), bucket_bytes=BUCKET)


def rarely(model, comm):
    return local_sgd.replicate(model, comm, 3, reducer=Mean(ring.schedule), bucket_bytes=BUCKET)


HOME = "lt_core.data_parallel."
CASES = [
    Case("naive", HOME + "replicate.naive", lambda m, c: naive.replicate(m, c, Mean(ring.schedule)), one_by_one),
    Case("bucketed", HOME + "replicate.bucketed", with_buckets(bucketed), in_buckets(bucketed)),
    Case("overlapped", HOME + "replicate.overlapped", with_buckets(overlapped), in_buckets(overlapped)),
    Case("local_sgd", HOME + "local_sgd", rarely, in_buckets(local_sgd), steps=3),
]


def measured(comm, case):
    model = nn.Sequential(*(nn.Linear(a, b, dtype=torch.float64) for a, b in pairwise(WIDTHS)))
    replica = case.replicate(model, comm)
    report = []
    for _ in range(2):  # the first time ranks also agree on what they bring
        before = comm.traffic.copy()
        for _ in range(case.steps):
            model.zero_grad()
            model(torch.ones(2, 5, dtype=torch.float64)).sum().backward()
            replica.sync()
            getattr(replica, "average", lambda: None)()
        sent = comm.traffic - before
        report.append((Sent(sent.counted.bytes, sent.counted.messages), sent.by_law.bytes))
    return report[1]


def rolls(name):
    """Numbers of each roll: of a step, and of each bucket that a reducer takes beside the backward."""
    step = [] if name == "local_sgd" else [2 + 4 * len(ELEMENTS)]
    return step + [5, 1] * (name == "overlapped")


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_bytes_and_messages_of_a_step(ranks, case, size):
    group = ranks(size)
    found = group.run(measured, case)
    assert [sent for sent, _ in found] == [case.law(size, rank) for rank in range(size)]
    assert {by_law for _, by_law in found} == {sum(laws.all_reduce_bytes(8 * n, size) for n in rolls(case.name))}
    witnesses.RAN.add((case.module, group.backend))


def test_buckets_are_fewer_messages_than_parameters():
    ring_messages = ring.law_messages(4, 100, 0)
    assert [naive.law_messages(4, [100] * 30, 0), bucketed.law_messages(4, [100] * 30, 8, 0, 8 * 1000)] == [
        30 * ring_messages, 3 * ring_messages
    ]  # fmt: skip


@dataclass(frozen=True)
class Blocks:
    """Costs of a step: of each block's forward and backward, and of each bucket's chunks on the wire."""

    forward_s: float
    backward_s: list[float]
    chunk_s: list[float]
    size: int

    def seconds(self, a: Action) -> float:
        last = len(self.backward_s) - 1
        if a.op is Op.SEND:
            return self.chunk_s[a.unit // self.size]
        return {Op.F: self.forward_s, Op.B: self.backward_s[last - a.unit]}[a.op] if a.peer < 0 else 0.0

    def kept_bytes(self, a: Action) -> int:
        return 0

    extra_bytes = kept_bytes

    def shared(self, a: Action) -> tuple[()]:
        return ()


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize(
    ("backward_s", "wire_s"),
    [([10.0] * 8, [1.0] * 8), ([10.0] * 8, [3.0] * 8), ([1.0, 5.0, 2.0], [4.0, 1.0, 7.0]), ([4.0], [2.0])],
)
def test_seconds_of_the_simulation(size, backward_s, wire_s):
    blocks, rounds = len(backward_s), ring.law_rounds(size)
    costs = Blocks(2.0, backward_s, [s / 4 for s in wire_s], size)
    wire_s = [rounds * s / 4 for s in wire_s]
    after = simulate(step.after_backward(blocks, size), costs).makespan_s()
    beside = simulate(step.beside_backward(blocks, size), costs).makespan_s()
    assert after == bucketed.law_seconds(2.0 * blocks, backward_s, wire_s)
    assert after == naive.law_seconds(2.0 * blocks, backward_s, wire_s)
    assert beside == overlapped.law_seconds(2.0 * blocks, backward_s, wire_s)


def local_steps(every, size):
    """`every` steps of each rank on its own, and then a ring of all: as a schedule."""
    wire = ring.schedule(size)
    own = [[Action(Op.F, 0, number, rank) for number in range(every)] for rank in range(size)]
    needs = {a: before or (own[a.rank][-1],) for a, before in wire.needs.items()}
    needs |= {b: (a,) for steps in own for a, b in pairwise(steps)}
    return Schedule("local", tuple((*steps, *lane) for steps, lane in zip(own, wire.lanes)), needs).check()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize(("every", "compute_s", "wire_s"), [(1, 120.0, 40.0), (8, 120.0, 40.0), (4, 0.25, 64.0)])
def test_seconds_of_local_steps_and_their_mean(size, every, compute_s, wire_s):
    rounds = ring.law_rounds(size)
    costs = Blocks(compute_s, [0.0], [wire_s / 8], size)
    simulated = simulate(local_steps(every, size), costs).makespan_s()
    assert simulated == local_sgd.law_seconds(every, compute_s, rounds * wire_s / 8)


def test_only_the_tail_is_not_hidden():
    """Forward 40 ms, eight blocks of 10 ms backward and 5 ms, then 15 ms on the wire."""
    assert naive.law_seconds(40, [10] * 8, [5] * 8) == 160 and overlapped.law_seconds(40, [10] * 8, [5] * 8) == 125
    assert naive.law_seconds(40, [10] * 8, [15] * 8) == 240 and overlapped.law_seconds(40, [10] * 8, [15] * 8) == 170
    assert local_sgd.law_seconds(8, 120.0, 40.0) == 8 * 120 + 40


def test_the_drawing():
    assert step.beside_backward(2, 2).check().grid().split("\n") == [
        "0: 0F0 1F0 1B0 0B0+0SEND0>1+1ADD0<1 1SEND1>1+0COPY1<1 2SEND2>1+3ADD2<1 3SEND3>1+2COPY3<1",
        "1: 0F0 1F0 1B0 0B0+1SEND0>0+0ADD0<0 0SEND1>0+1COPY1<0 3SEND2>0+2ADD2<0 2SEND3>0+3COPY3<0",
    ]
    assert step.after_backward(2, 1).check().grid() == "0: 0F0 1F0 1B0 0B0"


def test_every_law_of_a_replica_stands_in_the_cases():
    mine = [m for m in witnesses.modules_with_laws("data_parallel") if ".replicate." in m or m.endswith(".local_sgd")]
    assert {case.module for case in CASES} == set(mine)
