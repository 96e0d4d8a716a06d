"""Ranks with unequal batches, in number and in size, end together and train on the mean of all samples."""

import pytest
import torch
from torch import nn

from lt_core.data_parallel.replicate import bucketed, naive, overlapped
from lt_core.data_parallel.replicate.uneven import together

WAYS = {"naive": naive.replicate, "bucketed": bucketed.replicate, "overlapped": overlapped.replicate}
BATCHES = {0: [2, 1, 3], 1: [1, 4, 2, 2, 1]}  # samples of each
LOSS = nn.MSELoss(reduction="sum")


def data(rank):
    generator = torch.Generator().manual_seed(rank)
    return [torch.randn(n, 4, generator=generator, dtype=torch.float64) for n in BATCHES[rank]]


def model_of():
    model = nn.Linear(3, 1, dtype=torch.float64)
    model.weight.data, model.bias.data = torch.ones(1, 3, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    return model


def stepped(model):
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
    model.zero_grad()


def trained(comm, replicate, window):
    """window: in how many batches there is one step."""
    model, losses = model_of(), []
    replica, samples = replicate(model, comm), 0
    for number, batch in enumerate(together(comm, data(comm.rank))):
        syncs = number % window == window - 1 or number == 4
        with torch.enable_grad() if syncs else replica.no_sync():
            if batch is not None:
                LOSS(model(batch[:, :3]), batch[:, 3:]).backward()
                samples += len(batch)
        if syncs:
            replica.sync(samples=samples)
            stepped(model)
            samples = 0
        losses.append(number)
    return [p.detach() for p in model.parameters()], losses


def alone(window):
    model, everyone = model_of(), [data(rank) for rank in BATCHES]
    for first in range(0, 5, window):
        x = torch.cat([batch for mine in everyone for batch in mine[first : first + window]])
        (LOSS(model(x[:, :3]), x[:, 3:]) / len(x)).backward()
        stepped(model)
    return [p.detach() for p in model.parameters()]


@pytest.mark.parametrize("replicate", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("window", [1, 2])
def test_three_batches_and_five_with_and_without_windows(ranks, replicate, window):
    """A rank that had run out of batches left the others waiting in their next all-reduce."""
    expected = alone(window)
    (first, steps), (second, other) = ranks(2).run(trained, replicate, window)
    assert steps == other == [0, 1, 2, 3, 4]
    assert all(torch.equal(a, b) for a, b in zip(first, second))
    assert all((mine - plain).abs().max() <= 1e-12 for mine, plain in zip(first, expected))


class Talking(nn.Module):
    """A forward that talks to other ranks, as a BatchNorm over all of them does."""

    def __init__(self, comm):
        super().__init__()
        self.layer, self.comm = model_of(), comm

    def forward(self, x):
        seen = torch.tensor([float(len(x))])
        self.comm.all_reduce(seen)
        return self.layer(x) * seen.double()


def talking(comm, replicate):
    model, found = Talking(comm), []
    replica = replicate(model, comm)
    for batch in together(comm, data(comm.rank), spare=torch.zeros(0, 4, dtype=torch.float64)):
        model.zero_grad()
        model(batch[:, :3]).sum().backward()
        replica.sync(samples=len(batch))
        found.append(model.layer.bias.grad.item())
    return found


@pytest.mark.parametrize("replicate", WAYS.values(), ids=WAYS)
def test_a_forward_that_talks_gets_batches_of_nothing(ranks, replicate):
    """A rank without batches left the others waiting in a forward that took a mean over all ranks."""
    assert ranks(2).run(talking, replicate) == [[3.0, 5.0, 5.0, 2.0, 1.0]] * 2


def nothing(comm, replicate):
    model = model_of()
    replica = replicate(model, comm)
    replica.sync(samples=0)
    unused = [p.grad for p in model.parameters()]
    (model(torch.zeros(0, 3, dtype=torch.float64)).sum()).backward()
    replica.sync(samples=0)
    return unused, [p.grad.abs().max().item() for p in model.parameters()], list(together(comm, []))


@pytest.mark.parametrize("replicate", WAYS.values(), ids=WAYS)
def test_no_samples_at_all_are_zeros_and_no_nan(ranks, replicate):
    assert ranks(2).run(nothing, replicate) == [([None, None], [0.0, 0.0], [])] * 2
