"""Four ways to one mean, and a model of which each rank uses what it names."""

import pytest
import torch
from torch import nn

from lt_core.collectives import Mean, ring
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
