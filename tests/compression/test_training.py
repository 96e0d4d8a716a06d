"""Compressors train: replicated over ranks each of them learns, and all ranks keep the same weights, bit for bit."""

import torch
from torch import nn

from lt_core.compression import (
    QSGD,
    Coarse,
    ErrorFeedback,
    GradZip,
    Half,
    OneBit,
    Packed,
    PowerSGD,
    TernGrad,
    TopK,
    deep_gradient_compression,
)
from lt_core.data_parallel.replicate import bucketed
from lt_core.models.chain import chain

WAYS = {
    "half": Half,
    "one bit": lambda: ErrorFeedback(OneBit()),
    "terngrad": TernGrad,
    "qsgd": lambda: QSGD(7, 64, Packed()),
    "top-k": lambda: ErrorFeedback(TopK(0.1)),
    "coarse": lambda: ErrorFeedback(Coarse(0.3, 32)),
    "power sgd": lambda: ErrorFeedback(PowerSGD(1)),
    "grad zip": lambda: ErrorFeedback(GradZip(1)),
    "dgc": lambda: deep_gradient_compression(0.1, momentum=0.5),
}
STEPS, RATE = 10, 0.12


def trained(comm):
    """Of each way: the loss before and after, and the weights."""
    generator = torch.Generator().manual_seed(comm.rank)
    x = torch.randn(64, 8, generator=generator)
    y = x[:, :4].sin() + x[:, 4:] / 2
    found = {}
    for name, make in WAYS.items():
        model = chain((8, 16, 16, 4))
        replica = bucketed.replicate(model, comm, make())
        losses = []
        for _ in range(STEPS):
            model.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            replica.sync()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= RATE * parameter.grad
            losses.append(loss.item())
        found[name] = losses[0], losses[-1], torch.cat([p.detach().reshape(-1) for p in model.parameters()])
    return found


def test_each_learns_and_all_ranks_keep_the_same_bits(ranks):
    first, second = ranks(2).run(trained)
    for name in WAYS:
        (before, after, weights), (*_, others) = first[name], second[name]
        assert torch.equal(weights, others), name
        assert after < 0.7 * before, name


def grows(comm):
    """Without a memory what is never the largest is never learned; with one it is."""
    target, ends = torch.tensor([9.0, 1.0, -1.0, 0.5]), []
    for make in (lambda: TopK(0.25), lambda: ErrorFeedback(TopK(0.25))):
        w, reducer = torch.zeros(4), make()
        for _ in range(30):
            w = w - 0.1 * reducer.reduce({"w": w - target}, comm).mean["w"]
        ends.append(w.tolist())
    return ends


def test_without_memory_small_elements_wait(ranks):
    plain, kept = ranks(1).run(grows)[0]
    assert plain[3] == 0 and all(abs(x) > 0.3 for x in kept)


def tracked(comm, make):
    """How far apart the mean of the last 200 weights is from that of plain SGD, on one noisy parabola of 40 weights."""
    generator, target = torch.Generator().manual_seed(1), torch.linspace(-2, 2, 40)
    reducer, plain, ours, sums = make(), torch.zeros(40), torch.zeros(40), torch.zeros(2, 40)
    for step in range(400):
        noise = torch.randn(40, generator=generator)
        plain = plain - 0.05 * (plain - target + noise)
        ours = ours - 0.05 * reducer.reduce({"w": ours - target + noise}, comm).mean["w"]
        sums += torch.stack([ours, plain]) * (step >= 200)
    return float((sums[0] - sums[1]).norm() / 200 / target.norm())


def test_of_one_worker_the_mean_weights_are_plain_sgd_s_where_what_waits_is_remembered(ranks):
    """A tenth of the elements is sent at a time. Aji and Heafield 2017."""
    kept, lost = (ranks(1).run(tracked, make)[0] for make in (lambda: ErrorFeedback(TopK(0.1)), lambda: TopK(0.1)))
    assert kept < 0.01 and lost > 0.05


def momenta(comm):
    """How far a constant gradient moves a weight in 40 steps: with DGC's momentum, and with an optimizer's on top."""
    ends = []
    for extra in (0.0, 0.9):
        reducer, w, v = deep_gradient_compression(1.0, momentum=0.9), 0.0, 0.0
        reducer.masking = False
        for _ in range(40):
            v = extra * v + float(reducer.reduce({"w": torch.ones(1)}, comm).mean["w"])
            w += v
        ends.append(w)
    return ends


def test_momentum_twice_is_another_training(ranks):
    once, twice = ranks(1).run(momenta)[0]
    assert twice > 3 * once
