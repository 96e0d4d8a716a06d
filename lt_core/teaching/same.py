"""How two sets of tensors compare: bit for bit, within a bound, or not at all; NaN equals the same NaN in its place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor


class Difference(NamedTuple):
    """Where two sets differ most, by how much (infinite: no number compares), and what kind of number it is."""

    relative: float = 0.0
    where: str = ""
    dtype: torch.dtype = torch.float64
    broken: bool = False  # names, shapes, dtypes, NaN: nothing that a bound could forgive


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have one dtype, one shape and the same bits."""
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))


def bits(x: Tensor) -> Tensor:
    """The bytes of a tensor, on the CPU, in order: (bytes,)."""
    return x.detach().cpu().contiguous().reshape(-1).view(torch.uint8)


def differences(ours: Mapping[str, Tensor], plain: Mapping[str, Tensor]) -> Iterator[Difference]:
    """What is not bit-equal, tensor by tensor, beginning with names that only one side has."""
    for name in [*(n for n in plain if n not in ours), *(n for n in ours if n not in plain)]:
        yield Difference(math.inf, f"{name} is in one of the two only", broken=True)
    for name in (n for n in plain if n in ours):
        if not same_bits(ours[name], plain[name]):
            yield difference(name, ours[name], plain[name])


def difference(name: str, ours: Tensor, plain: Tensor) -> Difference:
    """How two tensors that are not bit-equal differ: the largest distance, relative to the largest of `plain`."""
    if ours.dtype != plain.dtype or ours.shape != plain.shape:
        kinds = [f"{str(x.dtype).removeprefix('torch.')} {tuple(x.shape)}" for x in (ours, plain)]
        return Difference(math.inf, f"{name} is {kinds[0]} against {kinds[1]}", plain.dtype, broken=True)
    a, b = _wide(ours), _wide(plain)
    finite = torch.isfinite(a) & torch.isfinite(b)
    odd = ~finite & (a != b) & ~(torch.isnan(a) & torch.isnan(b))
    if odd.any():
        at = int(odd.nonzero()[0])
        return Difference(math.inf, _at(name, at, ours, plain), plain.dtype, broken=True)
    gap = torch.where(finite, (a - b).abs(), 0.0)
    at, largest = int(gap.argmax()), float(torch.where(finite, b.abs(), 0.0).max())
    relative = float(gap[at]) / largest if largest else float(gap[at])
    return Difference(relative, _at(name, at, ours, plain), plain.dtype)


def _wide(x: Tensor) -> Tensor:
    """The numbers in double precision, complex ones as two: (n,)."""
    flat = x.detach().cpu()
    flat = torch.view_as_real(flat.resolve_conj()) if flat.is_complex() else flat
    return flat.reshape(-1).double()


def _at(name: str, index: int, ours: Tensor, plain: Tensor) -> str:
    number = index // 2 if ours.is_complex() else index
    place = ", ".join(str(int(i)) for i in torch.unravel_index(torch.tensor(number), ours.shape)) if ours.dim() else ""
    a, b = ours.detach().reshape(-1)[number].item(), plain.detach().reshape(-1)[number].item()
    return f"{name}[{place}] is {a!r} against {b!r}" if place else f"{name} is {a!r} against {b!r}"
