"""Ranks with unequal batches, in number and in size, end together and train on the mean of all samples."""

import pytest
import torch
from torch import nn

from lt_core.comm import threads
from lt_core.compression import ErrorFeedback, MomentumCorrection, Threshold, TopK
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


IN_TURN = {"naive": naive.replicate, "bucketed": bucketed.replicate}  # who know the samples before a reducer begins


def given(comm, replicate, reducer, steps):
    """The gradients after each step; steps: of each rank (samples, sum of its samples' gradients)."""
    model, found = nn.Linear(2, 1, bias=False, dtype=torch.float64), []
    replica = replicate(model, comm, reducer())
    for samples, gradient in steps[comm.rank]:
        model.zero_grad()
        (model.weight * torch.tensor(gradient, dtype=torch.float64)).sum().backward()
        replica.sync(samples=samples)
        found.append(model.weight.grad[0].tolist())
    waits = replica.state_dict().get("residual", {}).get("weight", torch.zeros(1, 2))
    return found, waits[0].tolist()


@pytest.mark.parametrize("way", IN_TURN)
@pytest.mark.parametrize(
    ("reducer", "first", "second"),
    [
        (lambda: ErrorFeedback(TopK(0.5)), [4.0, 0.0], [0.0, 3.0]),
        (lambda: MomentumCorrection(TopK(1.0), 0.0, clip=5.0), [4.0, 3.0], [0.0, 0.0]),
        (lambda: Threshold(3.5), [4.0, 0.0], [0.0, 0.0]),
    ],
    ids=["error feedback", "dgc's clip", "threshold"],
)
def test_a_reducer_works_on_means_over_samples(way, reducer, first, second):
    """64 samples whose mean is (4, 3), then one of (0, 0): the 3 that waited came as 192, the sum of 64."""
    steps = [[(64, [256.0, 192.0]), (1, [0.0, 0.0])]]
    assert threads.run(given, 1, (IN_TURN[way], reducer, steps), 20)[0][0] == [first, second]


@pytest.mark.parametrize("way", IN_TURN)
def test_what_was_applied_and_what_waits_are_all_means_over_samples(way):
    """Each step with its own number of samples, 0 on some ranks; both sums over steps are the same to rounding."""
    generator = torch.Generator().manual_seed(3)
    counts = [[5, 0, 1, 64, 2], [1, 3, 0, 2, 2], [9, 1, 1, 1, 0]]
    steps = [[(n, (n * torch.randn(2, generator=generator)).tolist()) for n in mine] for mine in counts]
    answers = threads.run(given, 3, (IN_TURN[way], lambda: ErrorFeedback(TopK(0.5)), steps), 20)
    applied = torch.tensor(answers[0][0], dtype=torch.float64).sum(0)
    waits = torch.tensor([left for _, left in answers], dtype=torch.float64).mean(0)
    sums, totals = zip(
        *((torch.tensor([g for _, g in each]).double().sum(0), sum(n for n, _ in each)) for each in zip(*steps))
    )
    produced = sum(g / n for g, n in zip(sums, totals))
    assert waits.any() and (applied + waits - produced).abs().max() <= 1e-14 * produced.abs().max()
