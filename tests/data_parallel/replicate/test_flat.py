"""Gradients are views of flat buckets, which lie where all ranks reach them: the same memory in every step."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from lt_core.comm import streamed, threads
from lt_core.comm.shared_memory import copied, in_place, over
from lt_core.data_parallel.replicate import naive, overlapped

WIDTHS, BUCKET_BYTES = [100, 120, 110, 90], 8 * 24_000  # two buckets, both above what is summed over the stages


def places(model):
    """Where each gradient begins and ends, from the last parameter on."""
    return [(p.grad.data_ptr(), p.grad.data_ptr() + p.grad.nbytes) for p in reversed([*model.parameters()])]


def trained(comm, set_to_none):
    """The places of the gradients after each step, and the mean of the last one."""
    model = nn.Sequential(*(nn.Linear(a, b, dtype=torch.float64) for a, b in pairwise(WIDTHS)))
    replica, found = overlapped.replicate(model, over(comm), bucket_bytes=BUCKET_BYTES), []
    for _ in range(3):
        model.zero_grad(set_to_none=set_to_none)
        model(torch.ones(1 + comm.rank, WIDTHS[0], dtype=torch.float64)).sum().backward()
        replica.sync()
        found.append(places(model))
    replica.close()
    return found, model[-1].bias.grad.unique().tolist()


@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_of_a_bucket_lie_side_by_side_where_they_lay_before_and_are_summed_there(monkeypatch, set_to_none):
    summed, plain = [], in_place.all_reduce
    monkeypatch.setattr(copied, "all_reduce", None)  # over the stages nothing goes
    monkeypatch.setattr(in_place, "all_reduce", lambda *call: (summed.append(len(call[1])), plain(*call)))
    for (first, *later), mean in threads.run(trained, 2, (set_to_none,), 20):
        assert later == [first, first] and mean == [1.5]
        apart = [k for k, (one, other) in enumerate(pairwise(first)) if one[1] != other[0]]
        assert len(apart) == 1  # between the two buckets
    assert summed == [2] * 2 * 2 * 3  # both ranks', of each bucket and step, on each rank


def streaming(comm, make):
    """The gradients' means after three steps, of a layer whose gradient is so large that it goes round the caches."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1101, 1003, dtype=torch.float64), nn.Linear(1003, 2, dtype=torch.float64))
    replica, found = make(model, over(comm)), []
    for step in range(3):
        model.zero_grad()
        x = torch.rand(5, 1101, generator=torch.Generator().manual_seed(10 * step + comm.rank), dtype=torch.float64)
        model(x).square().sum().backward()
        replica.sync()
        found += [p.grad.clone() for p in model.parameters()]
    replica.close()
    return found


@pytest.mark.processes
@pytest.mark.parametrize("size", [2, 3])
def test_a_large_gradient_is_copied_in_to_the_bit(processes, size):
    """What a core writes past its caches is all there when another one sums it."""
    assert streamed.LARGE_BYTES <= 1101 * 1003 * 8
    expected = processes(size).run(streaming, naive.replicate)
    found = processes(size).run(streaming, overlapped.replicate)
    for ours, plain in zip(found, expected, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(ours, plain, strict=True))
    assert all(torch.equal(a, b) for others in found for a, b in zip(others, found[0], strict=True))


class Steps(nn.Module):
    """Its second forward has a gradient of zeros, for which torch keeps no memory."""

    def __init__(self):
        super().__init__()
        self.weight, self.forwards = nn.Parameter(torch.ones(streamed.LARGE_BYTES // 4)), 0

    def forward(self):
        self.forwards += 1
        return (self.weight if self.forwards == 1 else torch.sgn(self.weight)).sum()


def test_zeros_without_memory_are_a_gradient():
    def fn(comm):
        model, found = Steps(), []
        replica = overlapped.replicate(model, comm)
        for _ in range(2):
            model.zero_grad()
            model().backward()
            replica.sync()
            found.append(model.weight.grad.unique().tolist())
        return found

    assert threads.run(fn, 2, (), 20) == [[[1.0], [0.0]]] * 2
