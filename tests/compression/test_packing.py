"""Bits, trits and numbers come back from their bytes, which are as many as the law says."""

import pytest
import torch

from lt_core.compression import packing

SIZES = [0, 1, 4, 5, 7, 8, 9, 40, 1001]


def drawn(elements, below):
    return torch.randint(below, (elements,), generator=torch.Generator().manual_seed(elements))


@pytest.mark.parametrize("elements", SIZES)
def test_bits_and_trits_come_back(elements):
    for pack, unpack, below, a_byte in (
        (packing.bits, packing.from_bits, 2, 8),
        (packing.trits, packing.from_trits, 3, 5),
    ):
        x = drawn(elements, below).to(torch.uint8)
        code = pack(x)
        assert code.dtype == torch.uint8 and len(code) == packing.bytes_for(elements, a_byte)
        assert torch.equal(unpack(code, elements), x)


@pytest.mark.parametrize("elements", SIZES)
@pytest.mark.parametrize("width", [1, 3, 4, 9, 17])
def test_numbers_come_back(elements, width):
    x = drawn(elements, 2**width).int()
    code = packing.numbers(x, width)
    assert len(code) == width * packing.bytes_for(elements, 8)
    assert torch.equal(packing.from_numbers(code, width, elements), x)
