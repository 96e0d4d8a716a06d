"""Training on many ranks is training: the parameters of one process on the whole batch, the same bits on every rank."""

import pytest
import torch
from torch import nn

from lt_core.base.units import bounds
from lt_core.collectives import Mean, naive, ring

BATCH, STEPS = 840, 3  # 840: every world of up to 8 ranks shares it out evenly
REDUCERS = {"naive": lambda: Mean(naive.schedule), "ring": lambda: Mean(ring.schedule), "native": Mean}


def mlp():
    generator = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)).double()
    for parameter in model.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return model


def trained(rank, size, mean):
    """The parameters after a few steps on this rank's part of the batch; `mean` makes all ranks' gradients one."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(BATCH, 5, generator=generator, dtype=torch.float64)
    y = torch.randn(BATCH, 3, generator=generator, dtype=torch.float64)
    low, high = bounds(BATCH, rank, size)
    model = mlp()
    velocity = [torch.zeros_like(p) for p in model.parameters()]
    for _ in range(STEPS):  # SGD with momentum by hand: torch's own imports seconds of compiler in each of 8 processes
        model.zero_grad()
        nn.functional.mse_loss(model(x[low:high]), y[low:high]).backward()
        means = mean({name: p.grad for name, p in model.named_parameters()})
        for (name, parameter), v in zip(model.named_parameters(), velocity):
            parameter.data -= 0.1 * v.mul_(0.9).add_(means[name])
    return [p.detach() for p in model.parameters()]


def data_parallel(comm, reducer_of):
    reducer = reducer_of()
    return trained(comm.rank, comm.size, lambda grads: reducer.reduce(grads, comm).mean)


@pytest.fixture(scope="module")
def plain():
    """One process, the whole batch, no communicator."""
    return trained(0, 1, lambda grads: grads)


def test_the_plain_run_learns(plain):
    assert all((new - old).abs().max() > 1e-3 for new, old in zip(plain, mlp().parameters()))


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("reducer_of", REDUCERS.values(), ids=REDUCERS)
def test_mean_gradients_train_as_the_whole_batch_does(ranks, plain, reducer_of, size):
    everyone = ranks(size).run(data_parallel, reducer_of)
    for parameters in everyone:
        assert all(torch.equal(mine, first) for mine, first in zip(parameters, everyone[0]))
        assert all((mine - alone).abs().max() <= 1e-12 for mine, alone in zip(parameters, plain))
