"""Buckets travel inside the backward, in one order on all ranks: seen in the trace of real ranks over a slow wire."""

import threading

import pytest
import torch
from torch import nn

from lt_core.base.cluster import Wire
from lt_core.base.errors import RankError
from lt_core.base.trace import Trace
from lt_core.collectives import Mean, ring
from lt_core.comm import threads
from lt_core.comm.shaped import shaped
from lt_core.comm.shared_memory import over
from lt_core.data_parallel.replicate import bucketed, naive, overlapped

DEVICE_S = 0.04  # a block's backward on the emulated device


class Busy(torch.autograd.Function):
    """A device that is at it for a while, in the backward."""

    @staticmethod
    def forward(ctx, x, begun):
        ctx.begun = begun
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        threading.Event().wait(DEVICE_S)
        if ctx.begun:
            assert ctx.begun.wait(10)
        return grad, None


class Block(nn.Linear):
    """The last backward of a step, which is the first forward's, lasts until `begun`, too."""

    begun = None

    def forward(self, x):
        if x.requires_grad or self.begun is None:
            return Busy.apply(super().forward(x), None)
        self.begun.clear()
        return Busy.apply(super().forward(x), self.begun)


class Told(Mean):
    """A reducer that tells when it begins: its thread may be late."""

    def __init__(self):
        super().__init__(ring.schedule)
        self.begun = threading.Event()

    def reduce(self, grads, comm):
        self.begun.set()
        return super().reduce(grads, comm)


def traced(comm, ways):
    wire = Wire("slow", 0.001, 128 * 8 / 0.004)  # some 5 ms a block at two ranks
    slow, traces = shaped(comm, wire), []
    for replicate in ways:
        model, trace = nn.Sequential(*(Block(8, 16, bias=False), Block(16, 8, bias=False)) * 2), Trace("step")
        replica = replicate(model, slow, trace)
        for _ in range(2):  # in the first step ranks also agree on what they bring
            trace.spans.clear()
            model(torch.ones(1, 8)).sum().backward()
            replica.sync()
        replica.close()
        model(torch.ones(1, 8))  # nobody writes any more
        traces.append(trace)
    return traces


def in_buckets(way, reducer=None):
    return lambda model, comm, trace: way.replicate(model, comm, reducer, bucket_bytes=512, trace=trace)


def beside_a_thread(model, comm, trace):
    reducer = Told()
    model[0].begun = reducer.begun
    return in_buckets(overlapped, reducer)(model, comm, trace)


WAYS = [
    lambda model, comm, trace: naive.replicate(model, comm, trace=trace),
    in_buckets(bucketed),
    in_buckets(overlapped),
    beside_a_thread,
]


def overlap_s(trace, rank):
    """Seconds in which the wire and the backward were both at work."""
    wire = [s for s in trace.spans if (s.rank, s.stream) == (rank, "out")]
    backward = [s for s in trace.spans if (s.rank, s.name) == (rank, "backward")]
    both = [min(a.end_s, b.end_s) - max(a.start_s, b.start_s) for a in wire for b in backward]
    return sum(s for s in both if s > 0)


def test_wire_spans_lie_inside_backward_spans(ranks):
    for rank, (one_by_one, together, beside, by_reducer) in enumerate(ranks(2).run(traced, WAYS)):
        for trace in (one_by_one, together):
            assert overlap_s(trace, rank) == 0
            assert [s.name for s in trace.spans if s.stream == "compute"] == ["forward", "backward"]
        for trace in (beside, by_reducer):
            end_s = max(s.end_s for s in trace.spans if s.name == "backward")
            wire = [s for s in trace.spans if s.stream == "out"]
            assert overlap_s(trace, rank) > 0
            assert all(s.start_s < end_s for s in wire[:-1])  # when they end is the machine's affair
            assert [s.name for s in wire] == ["1.weight", "0.weight"] and [s.nbytes for s in wire] == [512, 512]


class Lazy(nn.Module):
    """Its parts are used in another order on every rank."""

    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(2, 2, dtype=torch.float64) for _ in range(4))

    def forward(self, x, rank):
        for k in range(4):
            x = self.parts[(k * (1 + 2 * (rank % 2)) + rank) % 4](x)
        return x.sum()


def in_any_order(comm):
    model = Lazy()
    for p in model.parameters():
        p.data = torch.ones_like(p)
    replica = overlapped.replicate(model, comm, bucket_bytes=32)
    for _ in range(3):
        model.zero_grad()
        model(torch.ones(1, 2, dtype=torch.float64), comm.rank).backward()
        replica.sync()
    return [p.grad for p in model.parameters()]


def test_ranks_whose_gradients_come_in_different_orders(ranks):
    """Buckets that leave in the order of arrival would add up one rank's bias and another's weight."""
    model, grads = Lazy(), []
    for p in model.parameters():
        p.data = torch.ones_like(p)
    for rank in range(4):
        model.zero_grad()
        model(torch.ones(1, 2, dtype=torch.float64), rank).backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    for found in ranks(4).run(in_any_order):
        assert all(torch.equal(mine, sum(each) / 4) for mine, each in zip(found, zip(*grads)))


def windows(comm, replicate):
    model = nn.Linear(2, 1, dtype=torch.float64)
    replica, sent = replicate(model, comm), []
    for number in range(4):
        before = comm.traffic.copy()
        if number < 3:
            with replica.no_sync(), replica.no_sync():
                model(torch.full((1, 2), number + comm.rank + 1.0, dtype=torch.float64)).sum().backward()
        else:
            replica.sync()  # what the windows left, without a backward of its own
        sent.append((comm.traffic - before).bytes > 0)
    return sent, model.weight.grad.tolist()


WITHOUT_TRACE = {"naive": naive.replicate, "bucketed": bucketed.replicate, "overlapped": overlapped.replicate}


@pytest.mark.parametrize("replicate", WITHOUT_TRACE.values(), ids=WITHOUT_TRACE)
def test_within_a_window_nothing_is_sent_and_everything_adds_up(ranks, replicate):
    assert ranks(2).run(windows, replicate) == [([False] * 3 + [True], [[7.5, 7.5]])] * 2


def kept(comm):
    """Gradients that a user keeps, scales and reads, and a backward too many before the sync."""
    model = nn.Linear(2, 1, bias=False, dtype=torch.float64)
    replica, x = overlapped.replicate(model, comm), torch.full((1, 2), comm.rank + 1.0, dtype=torch.float64)
    for _ in range(2):
        model(x).sum().backward()
    replica.sync()
    twice = model.weight.grad.clone()
    model.weight.grad *= 0.5
    model(x).sum().backward()  # on top of what is there
    replica.sync()
    return twice.tolist(), model.weight.grad.tolist(), replica.state_dict()


def test_backwards_without_a_window_add_up_too(ranks):
    assert ranks(2).run(kept) == [([[3.0, 3.0]], [[3.0, 3.0]], {})] * 2


class Failing:
    """A reducer that fails on one rank."""

    def reduce(self, grads, comm):
        if comm.rank == 1:
            raise ValueError("no mean today")
        return Mean().reduce(grads, comm)

    def state_dict(self):
        return {"steps": 3}

    def load_state_dict(self, state):
        self.loaded = dict(state)


def failing(comm):
    model = nn.Linear(2, 1)
    replica = overlapped.replicate(model, comm, Failing())
    replica.load_state_dict(replica.state_dict())
    assert replica.reducer.loaded == {"steps": 3}
    model(torch.ones(1, 2)).sum().backward()
    try:
        replica.sync()
    except ValueError as error:
        comm.abort(str(error))
        raise
    finally:
        replica.close()


def test_what_a_reducer_raises_beside_the_backward_is_raised_in_sync(ranks):
    with pytest.raises(RankError) as error:
        ranks(2).run(failing)
    assert error.value.message == "no mean today"  # on the other rank as the reason of the end


def test_a_close_while_a_bucket_is_under_way():
    """Rank 0 closes when it has said where its bucket lies and waits for rank 1's: it has to stay where it is."""
    said, closed = threading.Event(), threading.Event()

    def fn(comm):
        comm, model = over(comm), nn.Linear(200, 200)
        replica, meet = overlapped.replicate(model, comm), comm._phases.meet
        if comm.rank:
            closed.wait(10)
        else:
            comm._phases.meet = lambda *place: (said.set(), meet(*place))
        model(torch.ones(1, 200)).sum().backward()
        if comm.rank:
            replica.sync()
        else:
            said.wait(10)
            replica.close()
            closed.set()
            replica.sync()
        return comm.ended, model.bias.grad.unique().tolist()

    assert threads.run(fn, 2, (), 20) == [("", [1.0])] * 2
