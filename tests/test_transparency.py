"""Training on many ranks is training: the parameters of one process on the whole batch, the same bits on every rank."""

import os
from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch import nn

from lt_core.base.units import bounds
from lt_core.collectives import Mean, naive, ring
from lt_core.comm.buffers import Allocator
from lt_core.comm.shared_memory import names, over
from lt_core.data_parallel import local_sgd
from lt_core.data_parallel.replicate import bucketed, overlapped
from lt_core.data_parallel.replicate import naive as naive_replica
from tests.data_parallel.problems import mlp
from tests.sharing import ROOM_BYTES

BATCH, STEPS = 840, 3  # 840: every world of up to 8 ranks shares it out evenly
REDUCERS = {"naive": lambda: Mean(naive.schedule), "ring": lambda: Mean(ring.schedule), "native": Mean}


def batch():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(BATCH, 5, generator=generator, dtype=torch.float64)
    return x, torch.randn(BATCH, 3, generator=generator, dtype=torch.float64)


def trained(rank, size, mean):
    """The parameters after a few steps on this rank's part of the batch; `mean` makes all ranks' gradients one."""
    x, y = batch()
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


WAYS = {
    "naive": naive_replica.replicate,
    "bucketed": partial(bucketed.replicate, bucket_bytes=100),
    "overlapped": partial(overlapped.replicate, bucket_bytes=100),
    "overlapped, ring": lambda model, comm: overlapped.replicate(model, comm, Mean(ring.schedule), bucket_bytes=100),
    "local": partial(local_sgd.replicate, every=1),
}


def replicated(comm, parts):
    """The parameters after each step, of each way; a step adds up `parts` micro-batches."""
    everything = {}
    for way, replicate in WAYS.items():
        model = mlp()
        for parameter in model.parameters():
            parameter.data += comm.rank  # rank 0's is everybody's
        everything[way] = list(steps(comm, model, replicate(model, comm), parts))
    return everything


def steps(comm, model, replica, parts):
    x, y = batch()
    low, high = bounds(BATCH, comm.rank, comm.size)
    cuts = [slice(low + a, low + b) for a, b in (bounds(high - low, k, parts) for k in range(parts))]
    velocity = [torch.zeros_like(p) for p in model.parameters()]
    for _ in range(STEPS):
        model.zero_grad()
        for k, cut in enumerate(cuts):
            alone = getattr(replica, "no_sync", nullcontext) if k < parts - 1 else nullcontext
            with alone():
                loss = nn.functional.mse_loss(model(x[cut]), y[cut], reduction="sum")
                (loss / (3 * (high - low))).backward()
        replica.sync()
        with torch.no_grad():
            for parameter, v in zip(model.parameters(), velocity):
                parameter -= 0.1 * v.mul_(0.9).add_(parameter.grad)
        getattr(replica, "average", lambda: None)()
        yield [p.detach().clone() for p in model.parameters()]


def held(everyone, plain):
    """Hold all ranks to one another, step by step and bit by bit, and to one process at the end."""
    for way in WAYS:
        for run in everyone:
            for mine, first in zip(run[way], everyone[0][way], strict=True):
                assert all(torch.equal(a, b) for a, b in zip(mine, first, strict=True)), way
        assert all((mine - alone).abs().max() <= 1e-12 for mine, alone in zip(everyone[0][way][-1], plain)), way


@pytest.mark.parametrize(("size", "parts"), [*((size, 1) for size in range(1, 9)), (3, 3), (4, 3)])
def test_replicas_train_as_the_whole_batch_does(ranks, plain, size, parts):
    held(ranks(size).run(replicated, parts), plain)


def in_one_memory(comm):
    """The same where gradients are summed in the memory that all processes map, by nobody's copy of them."""
    held = over(comm)
    return replicated(held, 1), os.getpid(), held.backend, isinstance(held, Allocator)


@pytest.mark.processes
@pytest.mark.skipif(bool(names.no_room(ROOM_BYTES)), reason="too little /dev/shm")
@pytest.mark.parametrize("size", [2, 4])
def test_replicas_in_processes_that_share_memory(processes, plain, size):
    """What the benchmarks of data parallelism measure: a process each, and no contract between."""
    everyone, pids, backends, places = zip(*processes(size).run(in_one_memory))
    held(everyone, plain)
    assert len(set(pids)) == size and os.getpid() not in pids and set(backends) == {"shared_memory"} and all(places)


class Dropping(nn.Module):
    """The same with dropout that is keyed by sample: a sample loses the same features whichever rank has it."""

    def __init__(self, dtype):
        super().__init__()
        self.inner, self.dtype = mlp().to(dtype), dtype

    def forward(self, low, high, step):
        generator = torch.Generator().manual_seed(step)
        masks = (torch.rand(BATCH, 7, generator=generator) > 0.5).to(self.dtype) * 2
        hidden = torch.tanh(self.inner[0](batch()[0][low:high].to(self.dtype)))
        return self.inner[2](hidden * masks[low:high])


def dropped(comm, dtype, replicate):
    """The parameters after a few steps; alone and on the whole batch, without a communicator."""
    model = Dropping(dtype)
    low, high = bounds(BATCH, comm.rank, comm.size) if comm else (0, BATCH)
    replica = replicate(model, comm) if comm else None
    for step in range(STEPS):
        model.zero_grad()
        nn.functional.mse_loss(model(low, high, step), batch()[1][low:high].to(dtype)).backward()
        if replica:
            replica.sync()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


@pytest.mark.parametrize(("dtype", "apart"), [(torch.float32, 1e-6), (torch.float64, 1e-12)], ids=str)
@pytest.mark.parametrize("way", ["bucketed", "overlapped"])
def test_single_precision_and_dropout_keyed_by_sample(ranks, way, dtype, apart):
    """Relative to the largest parameter, as sums of another order are."""
    alone = dropped(None, dtype, None)
    for size in (2, 3, 4):
        everyone = ranks(size).run(dropped, dtype, WAYS[way])
        assert all(torch.equal(mine, everyone[0]) for mine in everyone)
        assert (everyone[0] - alone).abs().max() <= apart * alone.abs().max()


def torch_s_own_dropout(comm, seeds):
    """Which features each rank lost, and the parameters after a step."""
    with torch.random.fork_rng():
        torch.manual_seed(seeds[comm.rank])
        model = nn.Sequential(nn.Linear(5, 40), nn.Dropout(0.5)).double()
        replica = bucketed.replicate(model, comm)
        y = model(batch()[0][:4])
        y.sum().backward()
    replica.sync()
    return (y == 0).tolist(), model[0].weight.grad.tolist()


@pytest.mark.processes
def test_ranks_drop_what_their_own_seed_says_and_keep_one_gradient(processes):
    """A process each: on threads all ranks draw from one generator."""
    (alike, mean), (same, also) = processes(2).run(torch_s_own_dropout, (7, 7))
    assert alike == same and mean == also
    (first, mean), (second, also) = processes(2).run(torch_s_own_dropout, (7, 8))
    assert first != second and mean == also
