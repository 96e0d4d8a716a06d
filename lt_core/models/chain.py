"""An MLP: layers in a row, a ReLU between two of them. What it computes hardly matters; how long and how large does."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import nn

from lt_core.base.errors import UserError

DIGITS = (64, 64, 64, 64, 64, 10)
WIDE = (64, *[2048] * 8, 10)  # 29.5 million parameters


def chain(widths: Sequence[int] = DIGITS, seed: int = 0, dtype: torch.dtype = torch.float32) -> nn.Sequential:
    """Linear layers from `widths[0]` features to `widths[-1]`, a ReLU between two of them.

    The same seed gives the same weights (He's). Errors: fewer than two widths.
    """
    if len(widths) < 2:
        raise UserError("a chain joins widths", list(widths), "at least two of them")
    generator = torch.Generator().manual_seed(seed)
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths):
        layer = nn.Linear(fan_in, fan_out, dtype=dtype)
        with torch.no_grad():
            layer.weight.normal_(0, (2 / fan_in) ** 0.5, generator=generator)
            layer.bias.zero_()
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1])
