"""What each compressor sends, counted at the door, is its law to the byte; its mean has the same bits on every rank."""

from collections.abc import Callable
from hashlib import sha256
from types import ModuleType
from typing import NamedTuple

import pytest
import torch

from lt_core.collectives import ring
from lt_core.collectives.reducer import Reducer
from lt_core.compression import (
    QSGD,
    Coarse,
    Elias,
    GradZip,
    Half,
    OneBit,
    Packed,
    PowerSGD,
    TernGrad,
    Threshold,
    TopK,
    coarse,
    elias,
    grad_zip,
    half,
    one_bit,
    power_sgd,
    qsgd,
    terngrad,
    top_k,
)
from lt_core.compression.bucket import flat
from tests import witnesses

SHAPES = {"w": (30, 20), "bias": (20,), "conv": (4, 6, 3, 3), "scale": (), "none": (0, 3)}
ELEMENTS, STEPS = 600 + 20 + 216 + 1, 3


class Bucket(NamedTuple):
    """One step of one rank, for laws that are of the data."""

    size: int
    rank: int
    step: int
    sent: torch.Tensor
    itemsize: int


class Case(NamedTuple):
    """A reducer and its law."""

    name: str
    of: ModuleType
    make: Callable[[], Reducer]
    law: Callable[[Bucket], int]

    @property
    def module(self) -> str:
        return self.of.__name__

    def __str__(self) -> str:
        return self.name


def pairs(b):
    return int((b.sent != 0).sum())


def steps_of(b, levels, chunk, code):
    """The bytes of the code, from what was sent: its elements are whole steps of the norm of their chunk."""
    rows = torch.nn.functional.pad(b.sent, (0, -ELEMENTS % chunk)).view(-1, chunk)
    unit = (gradient_norms(b, chunk) / levels)[:, None]
    steps = (rows / unit).round().int()
    assert torch.allclose(rows, steps * unit, rtol=1e-5) and int(steps.abs().max()) <= levels
    return qsgd.law_bytes(b.size, len(rows), code.law_bytes(steps, levels), b.itemsize)


def gradient_norms(b, chunk):
    x = flat(gradients(b.rank, b.step, torch.float64 if b.itemsize == 8 else torch.float32))
    return torch.nn.functional.pad(x, (0, -ELEMENTS % chunk)).view(-1, chunk).double().norm(dim=1).to(x.dtype)


def chosen_elements(b):
    chunks = torch.nn.functional.pad(b.sent, (0, -ELEMENTS % 64)).view(-1, 64)
    chosen = chunks.abs().sum(1) > 0
    return int(chosen.sum()) * 64 - int(chosen[-1]) * (-ELEMENTS % 64)


def tenth(step):
    return 0.1


ALL = list(SHAPES.values())
CASES = [
    Case("half", half, lambda: Half(schedule_of=ring.schedule), lambda b: half.law_bytes(b.size, ELEMENTS, b.rank)),
    Case("one bit", one_bit, OneBit, lambda b: one_bit.law_bytes(b.size, ALL, b.itemsize)),
    Case("terngrad", terngrad, TernGrad, lambda b: terngrad.law_bytes(b.size, 5, ELEMENTS, b.itemsize)),
    Case("elias", elias, lambda: QSGD(3, 64, Elias()), lambda b: steps_of(b, 3, 64, Elias())),
    Case("qsgd, elias", qsgd, lambda: QSGD(1, 512), lambda b: steps_of(b, 1, 512, Elias())),
    Case("qsgd, packed", qsgd, lambda: QSGD(7, 64, Packed()), lambda b: steps_of(b, 7, 64, Packed())),
    Case("top-k", top_k, lambda: TopK(0.1), lambda b: top_k.law_bytes(b.size, 84, b.itemsize)),
    Case("top-k by step", top_k, lambda: TopK(tenth), lambda b: top_k.law_bytes(b.size, 84, b.itemsize, True)),
    Case("threshold", top_k, lambda: Threshold(1.5), lambda b: top_k.law_bytes(b.size, pairs(b), b.itemsize, True)),
    Case(
        "coarse",
        coarse,
        lambda: Coarse(0.3, 64, ring.schedule),
        lambda b: coarse.law_bytes(b.size, 14, chosen_elements(b), b.itemsize, b.rank),
    ),
    Case(
        "coarse by step",
        coarse,
        lambda: Coarse(tenth, 64, ring.schedule),
        lambda b: coarse.law_bytes(b.size, 14, chosen_elements(b), b.itemsize, b.rank, by_step=True),
    ),
    Case(
        "power sgd",
        power_sgd,
        lambda: PowerSGD(2, schedule_of=ring.schedule),
        lambda b: power_sgd.law_bytes(b.size, ALL, 2, b.itemsize, b.rank),
    ),
    Case(
        "grad zip",
        grad_zip,
        lambda: GradZip(2, schedule_of=ring.schedule),
        lambda b: grad_zip.law_bytes(b.size, ALL, 2, b.itemsize, b.rank, b.step),
    ),
]


def gradients(rank, step, dtype):
    """Normal numbers, distinct by rank and step."""
    generator = torch.Generator().manual_seed(1000 * rank + step)
    return {
        name: torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for name, shape in SHAPES.items()
    }


def reduced(comm, make, dtype):
    """Of each step: bytes counted at the door (not by law), the bits of the mean, the same on all ranks, and `sent`."""
    reducer, report = make(), []
    reducer.reduce(gradients(comm.rank, 99, dtype), comm)  # the ranks agree once what they bring
    reducer = renewed(reducer, make)
    for step in range(STEPS):
        before = comm.traffic.copy()
        mean, sent = reducer.reduce(gradients(comm.rank, step, dtype), comm)
        passed = comm.traffic - before
        bits = sha256(flat(mean).numpy().tobytes()).hexdigest()
        report.append((passed.counted.bytes, passed.by_law.bytes, bits, flat(sent)))
    return report


def renewed(reducer, make):
    """The same reducer, which remembers nothing of the step before."""
    reducer.load_state_dict(make().state_dict())
    return reducer


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.full)])
def test_counted_bytes_are_the_law_s(ranks, case, size):
    group, dtype = ranks(size), torch.float64 if size == 3 else torch.float32
    reports = group.run(reduced, case.make, dtype)
    for step in range(STEPS):
        counted, by_law, bits, sent = zip(*(report[step] for report in reports))
        law = [case.law(Bucket(size, rank, step, sent[rank], dtype.itemsize)) for rank in range(size)]
        assert list(counted) == law
        assert set(by_law) == {0} and len(set(bits)) == 1
    witnesses.RAN.add((case.module, group.backend))


def test_every_law_stands_in_the_cases():
    assert {case.module for case in CASES} == set(witnesses.modules_with_laws("compression"))
