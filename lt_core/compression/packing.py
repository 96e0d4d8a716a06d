"""Small whole numbers in bytes: 8 bits a byte, 5 trits a byte (3^5 = 243 of 256).

    element   0 1 2 3 4 5 6 7 8 9 ..        byte i holds elements i, i + m, i + 2 m, ..   (m bytes in all)

so that packing is a few sums of long rows instead of many short ones. Law: ceil(n / 8) bytes a bit, ceil(n / 5) a trit.
"""

from __future__ import annotations

import torch
from torch import Tensor


def bits(x: Tensor) -> Tensor:
    """(n,) of 0 and 1 in ceil(n / 8) bytes."""
    return _digits(x, 8, 2)


def from_bits(code: Tensor, elements: int) -> Tensor:
    """The first `elements` bits of what `bits` packed: (n,) uint8 of 0 and 1."""
    return torch.cat([(code >> place) & 1 for place in range(8)])[:elements]


def trits(x: Tensor) -> Tensor:
    """(n,) of 0, 1 and 2 in ceil(n / 5) bytes."""
    return _digits(x, 5, 3)


def from_trits(code: Tensor, elements: int) -> Tensor:
    """The first `elements` trits of what `trits` packed: (n,) uint8 of 0, 1 and 2."""
    rows = []
    for _ in range(5):
        higher = torch.div(code, 3, rounding_mode="floor")
        rows.append(code - 3 * higher)
        code = higher
    return torch.cat(rows)[:elements]


def numbers(x: Tensor, width: int) -> Tensor:
    """(n,) whole numbers of `width` bits in width * ceil(n / 8) bytes, plane after plane."""
    x = x.to(torch.uint8) if width <= 8 else x
    return torch.cat([bits((x >> place) & 1) for place in range(width)])


def from_numbers(code: Tensor, width: int, elements: int) -> Tensor:
    """What `numbers` packed: (n,) int32."""
    total = torch.zeros(elements, dtype=torch.int32, device=code.device)
    for place, plane in enumerate(code.view(width, -1)):
        total += from_bits(plane, elements).int() << place
    return total


def bytes_for(elements: int, a_byte: int) -> int:
    """How many bytes hold so many elements at `a_byte` a byte."""
    return -(-elements // a_byte)


def _digits(x: Tensor, count: int, base: int) -> Tensor:
    """`count` digits a byte."""
    columns = bytes_for(x.numel(), count)
    rows = x.new_zeros(count * columns, dtype=torch.uint8)
    rows[: x.numel()] = x
    code = torch.zeros(columns, dtype=torch.uint8, device=x.device)
    for place, row in enumerate(rows.view(count, columns)):
        code += row * base**place
    return code
