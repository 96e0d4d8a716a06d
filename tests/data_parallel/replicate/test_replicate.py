"""Three ways to one mean: what each gradient is after a sync, whoever used its parameter, how often, in which order."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from lt_core.collectives import Mean, ring
from lt_core.comm.mesh import mesh
from lt_core.compression import ErrorFeedback, Half, OneBit, PowerSGD, TopK, deep_gradient_compression
from lt_core.data_parallel.replicate import bucketed, naive, overlapped

SMALL = 64  # bytes of a bucket: eight doubles


def by_ring(model, comm):
    return overlapped.replicate(model, comm, Mean(ring.schedule), bucket_bytes=SMALL)


WAYS = {
    "naive": naive.replicate,
    "bucketed": lambda model, comm: bucketed.replicate(model, comm, bucket_bytes=SMALL),
    "overlapped": lambda model, comm: overlapped.replicate(model, comm, bucket_bytes=SMALL),
    "overlapped, ring": by_ring,
}
each_way = pytest.mark.parametrize("replicate", WAYS.values(), ids=WAYS)


class Two(nn.Module):
    """Two weights of 1; a rank uses those that it names."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
        self.double()
        for p in self.parameters():
            p.data.fill_(1.0)

    def forward(self, x, names):
        return sum((getattr(self, name)(x) for name in names), torch.zeros(1, requires_grad=True)).sum()


def grads(model):
    return {name: None if p.grad is None else p.grad.tolist() for name, p in model.named_parameters()}


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


class Odd(nn.Module):
    """Tied, frozen, empty, half, used twice; rank by rank in another order."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3, dtype=torch.float64)
        self.tied = nn.Linear(3, 3, dtype=torch.float64)
        self.tied.weight = self.first.weight
        self.frozen = nn.Parameter(torch.ones(3, dtype=torch.float64), requires_grad=False)
        self.empty = nn.Parameter(torch.zeros(0, 3, dtype=torch.float64))
        self.bf16 = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
        self.twice = nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, x, rank):
        parts = [self.first(x) * self.twice, self.tied(x) * self.frozen, (x * self.bf16.double()) * self.twice]
        parts = parts[rank % 3 :] + parts[: rank % 3]
        return (parts[0] + parts[1] + parts[2]).sum() + self.empty.sum()


def odd_model(seed):
    model, generator = Odd(), torch.Generator().manual_seed(seed)
    for p in model.parameters():
        p.data = torch.randint(-3, 4, p.shape, generator=generator).to(p.dtype)
    return model


def x_of(rank):
    return torch.arange(3.0, dtype=torch.float64).view(1, 3) + rank


def odd_grads(comm, replicate, steps, set_to_none):
    model = odd_model(comm.rank)  # rank 0's is everybody's
    replica = replicate(model, comm)
    for _ in range(steps):
        model.zero_grad(set_to_none=set_to_none)
        model(x_of(comm.rank), comm.rank).backward()
        replica.sync()
    return {name: p.grad for name, p in model.named_parameters()}, len(replica.parameters)


@each_way
@pytest.mark.parametrize(("size", "set_to_none"), [(1, True), (2, True), (3, True), (3, False), (4, False)])
def test_tied_frozen_empty_and_half_parameters(ranks, replicate, size, set_to_none):
    model = odd_model(0)
    sum(model(x_of(rank), rank) for rank in range(size)).backward()
    for found, count in ranks(size).run(odd_grads, replicate, 3, set_to_none):
        assert count == 7 and "tied.weight" not in found
        assert found["frozen"] is None and found["empty"].shape == (0, 3)
        for name, p in model.named_parameters():
            if p.grad is not None:
                expected = p.grad.double() / size
                assert found[name].dtype == p.dtype
                assert (found[name].double() - expected).abs().sum() <= (1e-13 if p.dtype == torch.float64 else 0.1)


def late_and_early(comm, replicate):
    model = odd_model(0)
    model.frozen.requires_grad_(False)
    replica, found = replicate(model, comm), []
    for step in range(5):
        model.zero_grad()
        model.frozen.requires_grad_(step in (1, 2))
        model.twice.requires_grad_(step < 3)
        model(x_of(comm.rank), comm.rank).backward()
        replica.sync()
        found.append({name for name, p in model.named_parameters() if p.grad is not None})
        found.append(None if model.frozen.grad is None else model.frozen.grad.tolist())
    return found


@each_way
def test_parameters_that_thaw_and_freeze_on_the_way(ranks, replicate):
    everything = {"first.weight", "first.bias", "tied.bias", "empty", "bf16"}
    model = odd_model(0)
    model.frozen.requires_grad_()
    sum(model(x_of(rank), rank) for rank in range(2)).backward()
    mean = (model.frozen.grad / 2).tolist()
    expected = [everything | {"twice"}, None, *[everything | {"twice", "frozen"}, mean] * 2, *[everything, None] * 2]
    assert ranks(2).run(late_and_early, replicate) == [expected] * 2


def nested(comm, replicate, reentrant):
    layer = nn.Linear(3, 3, dtype=torch.float64)
    layer.weight.data, layer.bias.data = torch.eye(3, dtype=torch.float64) + 1, torch.ones(3, dtype=torch.float64)
    replica = replicate(layer, comm) if comm else None
    total = 0
    for rank in [comm.rank] if comm else range(2):
        x = x_of(rank).requires_grad_()
        total = total + (layer(checkpoint(layer, x, use_reentrant=reentrant)) ** 2).sum()
    total.backward()
    if replica:
        replica.sync()
    return [p.grad for p in layer.parameters()]


@each_way
@pytest.mark.parametrize("reentrant", [True, False])
def test_a_layer_inside_and_outside_a_checkpoint(ranks, replicate, reentrant):
    """A reentrant checkpoint's backward runs inside the backward: a gradient is ready twice."""
    alone = nested(None, None, reentrant)
    for found in ranks(2).run(nested, replicate, reentrant):
        assert all((mine - both / 2).abs().max() < 1e-9 for mine, both in zip(found, alone))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 3, sparse=True, dtype=torch.float64)
        self.head = nn.Linear(3, 1, dtype=torch.float64)
        self.table.weight.data = torch.arange(30.0, dtype=torch.float64).view(10, 3)

    def forward(self, rows, dense=False):
        known = nn.functional.embedding(rows, self.table.weight) if dense else self.table(rows)
        return self.head(known).sum()


def sparse(comm, replicate, rows, dense):
    model, found = Words(), []
    replica = replicate(model, comm)
    for _ in range(2):
        model.zero_grad()
        if rows[comm.rank] is not None:
            model(torch.tensor(rows[comm.rank]), dense and comm.rank == 1).backward()
        replica.sync()
        found.append((model.table.weight.grad, model.head.weight.data.clone()))
    return found


@each_way
@pytest.mark.parametrize(
    ("rows", "dense"), [([[1, 2, 2], [2, 9]], False), ([[3], None], False), ([[1, 2], [2, 9]], True)]
)
def test_sparse_gradients_stay_sparse_and_mix_with_dense_ones(ranks, replicate, rows, dense):
    used = sorted({row for mine in rows for row in mine or []})
    for step in zip(*ranks(2).run(sparse, replicate, rows, dense)):
        for grad, head in step:
            expected = torch.zeros(10, 3, dtype=torch.float64)
            for row in (row for mine in rows for row in mine or []):
                expected[row] += head[0] / 2
            assert grad.is_sparse is not dense
            assert (grad.to_dense() - expected).abs().max() < 1e-15
            assert dense or grad.coalesce().indices()[0].tolist() == used
