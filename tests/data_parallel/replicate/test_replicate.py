"""What each gradient is after a sync, whoever used its parameter, and what happens to one that nobody used."""

import pytest
import torch
from torch import nn

from lt_core.comm.mesh import mesh
from lt_core.compression import ErrorFeedback, Half, OneBit, PowerSGD, TopK, deep_gradient_compression
from lt_core.data_parallel.replicate import bucketed, overlapped
from tests.data_parallel.replicate.ways import WAYS, Two, each_way, grads


def mean_of_use(comm, replicate, uses):
    model = Two()
    replica = replicate(model, comm)
    model(torch.tensor([[comm.rank + 1.0]], dtype=torch.float64), uses[comm.rank]).backward()
    replica.sync()
    replica.close()
    return grads(model)


@each_way
@pytest.mark.parametrize(
    ("uses", "a", "b"),
    [(["ab", "ab"], 1.5, 1.5), (["a", "a"], 1.5, None), (["a", "b"], 0.5, 1.0), (["", "b"], None, 1.0)],
)
def test_what_one_rank_did_not_use_counts_as_zero_and_what_nobody_used_stays_none(ranks, replicate, uses, a, b):
    expected = {"a.weight": a and [[a]], "b.weight": b and [[b]]}
    assert ranks(2).run(mean_of_use, replicate, uses) == [expected] * 2


def momentum_and_decay(comm, replicate):
    model = Two()
    replica = replicate(model, comm)
    moved = []
    velocity = {p: torch.zeros_like(p) for p in model.parameters()}
    for names in ("ab", "a"):
        before = {name: p.clone() for name, p in model.named_parameters()}
        model.zero_grad()
        model(torch.tensor([[comm.rank + 1.0]], dtype=torch.float64), names).backward()
        replica.sync()
        with torch.no_grad():
            for p in (p for p in model.parameters() if p.grad is not None):
                p -= 0.1 * velocity[p].mul_(0.9).add_(p.grad + 0.1 * p)
        moved.append([name for name, p in model.named_parameters() if not torch.equal(p, before[name])])
    return moved


@each_way
def test_momentum_and_decay_move_nothing_that_nobody_used(ranks, replicate):
    """A zero gradient in place of None let momentum and weight decay move a layer that no rank had used."""
    assert ranks(2).run(momentum_and_decay, replicate) == [[["a.weight", "b.weight"], ["a.weight"]]] * 2


MEMORIES = [lambda: ErrorFeedback(TopK(0.5)), lambda: deep_gradient_compression(0.5, momentum=0.5)]
STEPS = [("ab", 1.0), ("b", 0.125), ("", 1.0), ("ab", 4.0), ("a", 0.0), ("b", 0.0)]  # who is used, times what


def waited(comm, way, make):
    """The gradients after each step, of a model of which half is sent and half waits."""
    model, found = Two(), []
    replica = way.replicate(model, comm, make())
    for names, factor in STEPS:
        model.zero_grad()
        model(torch.tensor([[factor * (comm.rank + 1)]], dtype=torch.float64), names).backward()
        replica.sync()
        found.append([None if p.grad is None else p.grad.item() for p in model.parameters()])
    return found, {
        name: [x.item() for x in kept.values()] for name, kept in replica.state_dict().items() if name in KEPT
    }


KEPT = ("residual", "waiting", "velocity")


@pytest.mark.parametrize("make", MEMORIES, ids=["error feedback", "dgc"])
def test_what_waits_of_a_parameter_stays_until_somebody_uses_it(ranks, make):
    """A compressor beside the backward sent what it remembered of a layer that nobody used, and nobody took it."""
    (together, kept), beside = (ranks(2).run(waited, way, make)[0] for way in (bucketed, overlapped))
    assert (together, kept) == beside
    assert together[1][0] is None and together[2] == [None, None] and together[4][1] is None


class Fails(torch.autograd.Function):
    """A backward that fails when the last layer's gradient is there."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        raise FloatingPointError("no gradient today")


def skipped(comm, replicate):
    model = Two()
    replica, x, found = replicate(model, comm), torch.tensor([[comm.rank + 1.0]], dtype=torch.float64), []
    for between in (lambda x: x, Fails.apply, None):
        if between:
            try:
                model.b(between(model.a(x))).sum().backward()
            except FloatingPointError as error:
                found.append(str(error))
            replica.forget()
            found.append(grads(model))
    model.b(model.a(x)).sum().backward()
    replica.sync()
    return [*found, grads(model)]


@each_way
def test_what_is_forgotten_is_not_counted(ranks, replicate):
    """A backward that failed half way, or whose step was skipped, was added to the next one: its bucket had left."""
    nothing, mean = {"a.weight": None, "b.weight": None}, {"a.weight": [[1.5]], "b.weight": [[1.5]]}
    expected = [nothing, "no gradient today", nothing, mean]
    assert ranks(2).run(skipped, replicate) == [expected] * 2


NOTHING_TO_TRAIN = {"no parameters": nn.Identity, "frozen": lambda: nn.Linear(2, 1).double().requires_grad_(False)}


def thawed(comm, replicate, kind):
    model = NOTHING_TO_TRAIN[kind]()
    replica = replicate(model, comm)
    replica.sync()
    found = [p.grad for p in model.parameters()]
    model.requires_grad_()
    for _ in range(2):
        model.zero_grad()
        if list(model.parameters()):
            model(torch.full((1, 2), comm.rank + 1.0, dtype=torch.float64)).sum().backward()
        replica.sync(samples=1)
    replica.close()
    return [*found, *(p.grad.tolist() for p in model.parameters())]


@each_way
@pytest.mark.parametrize(("kind", "expected"), [("no parameters", []), ("frozen", [None, None, [[1.5, 1.5]], [1.0]])])
def test_a_model_with_nothing_to_train_at_first(ranks, replicate, kind, expected):
    assert ranks(2).run(thawed, replicate, kind) == [expected] * 2


EXACT = [Half, OneBit, PowerSGD, lambda: TopK(1.0)]  # of these numbers


def in_rows(comm, ways):
    row, found = mesh(comm, dp=2, tp=2).dp, []
    for replicate in ways:
        model = Two()
        model.register_buffer("seen", torch.tensor(comm.rank))
        model.a.weight.data.fill_(comm.rank)
        replica = replicate(model, row)
        model(torch.tensor([[comm.rank + 1.0]], dtype=torch.float64), "ab").backward()
        replica.sync()
        replica.close()
        found.append((model.a.weight.item(), model.seen.item(), *(p.grad.item() for p in model.parameters())))
    return found


def test_rows_of_a_grid_that_do_not_hold_rank_0(ranks):
    """A root that was meant as a rank of the group was taken for one of the world: no start, no mean, and no error."""
    compressed = [lambda model, row, make=make: bucketed.replicate(model, row, make()) for make in EXACT]
    everyone = ranks(4).run(in_rows, [*WAYS.values(), *compressed])
    assert everyone == [[(rank % 2, rank % 2, *[rank % 2 + 2.0] * 2)] * (len(WAYS) + len(EXACT)) for rank in range(4)]
