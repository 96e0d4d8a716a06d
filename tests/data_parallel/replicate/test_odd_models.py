"""A gradient is the mean also of tied, frozen, empty, half, sparse and checkpointed parameters, in any order."""

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from tests.data_parallel.replicate.ways import each_way


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
