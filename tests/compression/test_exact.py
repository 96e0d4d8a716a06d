"""A compressor that leaves nothing out is the mean: ratio 1, full rank, many levels."""

import pytest
import torch

from lt_core.collectives import Mean
from lt_core.compression import QSGD, Coarse, GradZip, PowerSGD, Threshold, TopK

EXACT = {
    "top-k": lambda: TopK(1),
    "threshold": lambda: Threshold(1e-300),
    "coarse": lambda: Coarse(1, 7),
    "power sgd": lambda: PowerSGD(9),
    "grad zip": lambda: GradZip(9),
}


def gradient(rank):
    generator = torch.Generator().manual_seed(rank)
    return {"w": torch.randn(12, 9, generator=generator).double(), "b": torch.randn(9, generator=generator).double()}


def compared(comm):
    exact = Mean().reduce(gradient(comm.rank), comm).mean
    got = {name: make().reduce(gradient(comm.rank), comm).mean for name, make in EXACT.items()}
    fine = QSGD(2**22, 16).reduce(gradient(comm.rank), comm).mean
    assert all((fine[n] - exact[n]).abs().max() < 1e-5 for n in exact)
    return {name: max(float((mean[n] - exact[n]).abs().max()) for n in exact) for name, mean in got.items()}


def in_a_group(comm):
    group = comm.subset([2, 1])
    return compared(group) if group.rank >= 0 else {"outside": 0.0}


@pytest.mark.parametrize("fn", [compared, in_a_group])
def test_nothing_left_out_is_the_mean(ranks, fn):
    for faults in ranks(3).run(fn):
        assert max(faults.values()) < 1e-15, faults
