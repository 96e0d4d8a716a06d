"""Two techniques at once train as each alone promises: data parallelism with windows, clipping, each compressor."""

from contextlib import nullcontext
from functools import partial

import pytest
import torch
from torch import nn

from lt_core.collectives import Mean
from lt_core.compression import (
    QSGD,
    Coarse,
    ErrorFeedback,
    GradZip,
    Half,
    MomentumCorrection,
    OneBit,
    PowerSGD,
    TernGrad,
    Threshold,
    TopK,
)
from lt_core.data_parallel.replicate import bucketed, naive, overlapped

STEPS, PARTS, SAMPLES = 4, 2, 6  # of each rank and micro-batch
WAYS = {"naive": naive.replicate, "bucketed": bucketed.replicate, "overlapped": overlapped.replicate}
COMPRESSORS = {
    "half": partial(Half, torch.bfloat16),
    "one_bit": lambda: ErrorFeedback(OneBit()),
    "terngrad": TernGrad,
    "qsgd": QSGD,
    "top_k": lambda: ErrorFeedback(TopK(0.25)),
    "threshold": lambda: ErrorFeedback(Threshold(0.05)),
    "coarse": lambda: ErrorFeedback(Coarse(0.5, chunk=8)),
    "dgc": lambda: MomentumCorrection(TopK(0.25)),
    "power_sgd": lambda: ErrorFeedback(PowerSGD(2)),
    "grad_zip": lambda: ErrorFeedback(GradZip(2)),
}
LOSSLESS = {"top_k": lambda: TopK(1.0), "coarse": lambda: Coarse(1.0, chunk=8), "mean": lambda: ErrorFeedback(Mean())}


def model_of():
    model, generator = nn.Sequential(nn.Linear(12, 9), nn.Tanh(), nn.Linear(9, 3)).double(), torch.Generator()
    for p in model.parameters():
        p.data = torch.randn(p.shape, generator=generator.manual_seed(p.numel()), dtype=torch.float64)
    return model


def batch(rank, step, part):
    generator = torch.Generator().manual_seed(100 * step + 10 * part + rank)
    x = torch.randn(SAMPLES, 12, generator=generator, dtype=torch.float64)
    return x, x[:, :3].sin()


def trained(ranks_of, model, window, sync, max_norm):
    """The loss of each step, the norms before clipping, and the parameters at the end."""
    losses, norms = [], []
    for step in range(STEPS):
        model.zero_grad()
        total = 0.0
        for part in range(PARTS):
            with window() if part < PARTS - 1 else nullcontext():
                for rank in ranks_of:
                    x, y = batch(rank, step, part)
                    loss = nn.functional.mse_loss(model(x), y) / (PARTS * len(ranks_of))
                    loss.backward()
                    total += loss.item()
        sync()
        if max_norm:
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), max_norm).item())
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
        losses.append(total)
    return losses, norms, [p.detach().clone() for p in model.parameters()]


def on_ranks(comm, replicate, reducer_of, max_norm):
    model = model_of()
    replica = replicate(model, comm, reducer_of() if reducer_of else None)
    found = trained([comm.rank], model, replica.no_sync, replica.sync, max_norm)
    replica.close()
    return found


def alone(size, max_norm):
    return trained(range(size), model_of(), nullcontext, lambda: None, max_norm)


def same_bits(everyone):
    return all(torch.equal(a, b) for _, _, mine in everyone for a, b in zip(mine, everyone[0][2]))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("max_norm", [None, 1.0], ids=["windows", "windows and clipping"])
def test_windows_and_clipping(ranks, way, max_norm):
    """Clipping belongs after the mean: each rank's own norm would scale each rank's gradient by another number."""
    _, norms, plain = alone(3, max_norm)
    everyone = ranks(3).run(on_ranks, WAYS[way], None, max_norm)
    assert same_bits(everyone)
    assert max_norm is None or (max(norms) > max_norm and norms == pytest.approx(everyone[0][1], rel=1e-12))
    assert all((mine - other).abs().max() <= 1e-12 for mine, other in zip(everyone[0][2], plain))


@pytest.mark.parametrize("name", LOSSLESS)
def test_a_compressor_that_leaves_nothing_out_is_no_compressor(ranks, name):
    _, _, plain = alone(2, 1.0)
    everyone = ranks(2).run(on_ranks, bucketed.replicate, LOSSLESS[name], 1.0)
    assert same_bits(everyone)
    if name == "mean":  # a memory round what loses nothing: the very bits
        assert same_bits([*everyone, *ranks(2).run(on_ranks, bucketed.replicate, None, 1.0)])
    assert all((mine - other).abs().max() <= 1e-12 for mine, other in zip(everyone[0][2], plain))


DEAR = {"qsgd"}  # writes bit by bit


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.full] * (n in DEAR)) for n in COMPRESSORS])
def test_each_compressor_with_windows_and_clipping(ranks, name):
    """The same bits on every rank, also where the compressor works beside the backward, on a thread; and it learns."""
    runs = [ranks(2).run(on_ranks, WAYS[way], COMPRESSORS[name], 5.0) for way in ("bucketed", "overlapped")]
    assert same_bits([*runs[0], *runs[1]])
    losses = [sum(both) for both in zip(*(mine for mine, _, _ in runs[0]))]
    assert losses[-1] < losses[0]
