"""What is asked of top-k over ranks: top_k_mean(comm, x, k) gives the mean of each rank's k largest elements."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lt_core.base.units import told_apart
from lt_core.teaching.checks.exercise import Make, Run
from lt_core.teaching.checks.tensors import no_tensor

K, PAIR_BYTES = 3, 16  # of an index and a value in 64 bits each


def kept(x: Tensor) -> Tensor:
    """x with its K largest, and zeros."""
    out, where = torch.zeros_like(x), x.abs().topk(min(K, x.numel())).indices
    out[where] = x[where]
    return out


def apart(random: torch.Generator, size: int, elements: int) -> list[Tensor]:
    """Ranks whose largest elements are none of another's; all above zero."""
    xs = torch.rand(size, elements, generator=random, dtype=torch.float64)
    for rank in range(size):
        xs[rank, K * rank : K * (rank + 1)] += torch.randint(2, 50, (K,), generator=random)
    return list(xs)


def alike(random: torch.Generator, size: int, elements: int) -> list[Tensor]:
    """Ranks whose largest elements stand in the same places; all above zero."""
    xs = torch.rand(size, elements, generator=random, dtype=torch.float64)
    xs[:, torch.randperm(elements, generator=random)[:K]] += torch.randint(2, 50, (size, K), generator=random)
    return list(xs)


def below_zero(make: Make) -> Make:
    """The same with signs that change from place to place."""

    def made(random: torch.Generator, size: int, elements: int) -> list[Tensor]:
        signs = 1 - 2 * (torch.arange(elements) % 2)
        return [x * signs for x in make(random, size, elements)]

    return made


def ties(random: torch.Generator, size: int, elements: int) -> list[Tensor]:
    """All elements alike."""
    value = float(torch.randint(2, 50, (), generator=random))
    return [torch.full((elements,), value, dtype=torch.float64) for _ in range(size)]


def mean_of(given: Sequence[Tensor]) -> Tensor:
    """The right answer where no ties are."""
    return torch.stack([kept(x) for x in given]).sum(0) / len(given)


def is_the_mean(run: Run) -> str:
    """A judge: the mean on every rank, in any order of the sum."""
    if wrong := no_tensor(run):
        return wrong
    wanted = mean_of(run.given)
    for r, value in enumerate(run.values()):
        if not torch.allclose(value, wanted, rtol=1e-12, atol=1e-12):
            at = int((value - wanted).abs().argmax())
            held, right = told_apart(value[at].item(), wanted[at].item())
            return f"{run.case}: rank {r} holds {held} in place {at}, {right} is right"
    return ""


def keeps_k(run: Run) -> str:
    """A judge: of elements that are all alike just K were kept."""
    if wrong := no_tensor(run):
        return wrong
    found = int(run.values()[0].count_nonzero())
    return "" if found == K else f"{run.case}: {found} elements were kept where all are alike; k is {K}"


def sends_pairs(run: Run) -> str:
    """A judge: no more than k pairs of index and value go to each other rank."""
    most = (run.case.size - 1) * K * PAIR_BYTES
    for r, o in enumerate(run.outcomes):
        if o.traffic.bytes > most:
            return f"{run.case}: rank {r} sent {o.traffic.bytes:,} bytes; {K} pairs to each other rank are {most:,}"
    return ""
