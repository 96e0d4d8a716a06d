"""Where each parameter lies when all of them are one vector, cut for K servers.

weight (3, 2)  bias (3,)      0 1 2 3 4 5 | 6 7 8
K = 2 servers                 0 1 2 3 | 4 5 6 7 8       part 1: two pieces, the end of weight and all of bias

A gradient travels with one more number a piece: whether its parameter was used at all. A parameter that nobody used
must stay where it is, although its optimizer has momentum or decay; a gradient of zeros would move it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lt_core.base.errors import UserError
from lt_core.base.units import bounds


class Piece(NamedTuple):
    """A stretch of one parameter within a part: which parameter, and from where to where of the part."""

    parameter: int
    low: int
    high: int


class Layout:
    """The trainable parameters of a model as one vector in `parts` parts. Errors: none of them, or several dtypes."""

    def __init__(self, model: nn.Module, parts: int = 1) -> None:
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        kinds = sorted({str(p.dtype).removeprefix("torch.") for p in self.parameters.values()})
        if len(kinds) != 1:
            raise UserError("a server keeps one vector", f"parameters of {', '.join(kinds) or 'no'} dtype", "one dtype")
        self.parts, first = parts, next(iter(self.parameters.values()))
        self.dtype, self.device = first.dtype, first.device
        ends, end = [], 0
        for p in self.parameters.values():
            ends.append((end, end + p.numel()))
            end += p.numel()
        self.places, self.elements = ends, end

    def lines(self) -> list[str]:
        """What ranks that share the vector have in common: a line a parameter."""
        return [f"{name} {tuple(p.shape)} {p.dtype}" for name, p in self.parameters.items()]

    def bounds(self, part: int) -> tuple[int, int]:
        """From where to where part `part` goes."""
        return bounds(self.elements, part, self.parts)

    def pieces(self, part: int) -> list[Piece]:
        """What of which parameter lies in it."""
        low, high = self.bounds(part)
        cuts = [(max(a, low), min(b, high)) for a, b in self.places]
        return [Piece(i, a - low, b - low) for i, (a, b) in enumerate(cuts) if a < b]

    def message(self, part: int) -> int:
        """Elements of a gradient's message: the part, and whether each piece of it was used."""
        low, high = self.bounds(part)
        return high - low + len(self.pieces(part))

    def flat(self, named: Mapping[str, Tensor]) -> Tensor:
        """One vector (elements,) of tensors by name; zeros where a name is missing."""
        whole = torch.zeros(self.elements, dtype=self.dtype, device=self.device)
        for (low, high), name in zip(self.places, self.parameters):
            if name in named:
                whole[low:high] = named[name].detach().reshape(-1)
        return whole

    def load(self, whole: Tensor) -> None:
        """The model's parameters become those of the vector (elements,)."""
        with torch.no_grad():
            for (low, high), p in zip(self.places, self.parameters.values()):
                p.copy_(whole[low:high].view(p.shape))
