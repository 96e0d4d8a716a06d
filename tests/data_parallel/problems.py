"""Small things to train: the same gradient wherever a worker's clock is asked for it, and no two alike."""

import torch
from torch import nn


def mlp():
    """5-7-3, float64, the same weights wherever it is made."""
    random = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3)).double()
    for p in model.parameters():
        p.data = torch.randn(p.shape, generator=random, dtype=torch.float64)
    return model


def batch(rank, clock, rows=4):
    random = torch.Generator().manual_seed(1000 * rank + clock)
    return (torch.randn(rows, n, generator=random, dtype=torch.float64) for n in (5, 3))


def loss(model, rank, clock):
    x, y = batch(rank, clock)
    return nn.functional.mse_loss(model(x), y)


class Numbers(nn.Module):
    """Four integers; the gradient of clock c at rank r is an integer of its own, whatever the weights are."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(4, dtype=torch.float64))


def numbers(model, rank, clock):
    return (model.w * value(rank, clock)).sum()


def value(rank, clock):
    """What the gradient of `numbers` is, everywhere: each (rank, clock) up to (8, 64) has a bit pattern of its own."""
    return float((1 << 8) * clock + (1 << rank))


class Parabola(nn.Module):
    """w^2 / 2 from w = 1: the quadratic of the stability bound."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(1, dtype=torch.float64))


def parabola(model, rank, clock):
    return (model.w**2).sum() / 2


def flat(model):
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def serial(optimizer, steps, of=loss, make=mlp):
    """The plain loop of one process, with an optimizer of torch's own."""
    model = make()
    opt = optimizer(model.parameters())
    for clock in range(steps):
        opt.zero_grad()
        of(model, 0, clock).backward()
        opt.step()
    return flat(model)
