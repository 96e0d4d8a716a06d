"""Elias' omega code: the words of his paper, every chunk back from its bytes, and as many of them as the law says."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lt_core.compression.elias import BLOCK, Elias, law_bits, omega

WORDS = {1: "0", 2: "100", 3: "110", 4: "101000", 7: "101110", 8: "1110000", 16: "10100100000", 100: "1011011001000"}


@pytest.mark.parametrize(("number", "word"), WORDS.items())
def test_the_words(number, word):
    (value,), (bits,) = omega(torch.tensor([number]))
    assert f"{int(value):0{int(bits)}b}" == word
    assert law_bits(number) == int(bits) == len(word)


def test_a_chunk_of_the_drawing_above_takes_two_bytes():
    code = Elias().encode(torch.tensor([[0, 0, 2, 0, -1]], dtype=torch.int32), 2)
    assert code[:4].view(torch.int32).tolist() == [12]
    assert f"{int(code[4]):08b}{int(code[5]):08b}" == "1100100100100000"[:16]


def comes_back(steps):
    code = Elias().encode(steps, 0)
    return len(code) == Elias().law_bytes(steps, 0) and torch.equal(Elias().decode(code, *steps.shape, 0), steps)


@settings(max_examples=25)
@given(st.integers(0, 5), st.integers(1, 40), st.integers(1, 2**22), st.integers(0, 99))
def test_every_chunk_comes_back(chunks, width, largest, seed):
    generator = torch.Generator().manual_seed(seed)
    steps = torch.randint(-largest, largest + 1, (chunks, width), generator=generator, dtype=torch.int32)
    assert comes_back(steps * (torch.rand(steps.shape, generator=generator) < 0.5))


def test_chunks_of_zeros_and_more_chunks_than_one_block():
    steps = torch.zeros(BLOCK + 3, 4, dtype=torch.int32)
    assert comes_back(steps)
    steps[0, 3], steps[BLOCK, 0], steps[BLOCK + 2, 1] = 5, -1, 1
    assert comes_back(steps)


@pytest.mark.parametrize("before", range(8))
def test_the_largest_numbers_from_any_bit_of_a_byte_on(before):
    """A one takes three bits, so that the large ones behind it begin at every place of a byte."""
    assert comes_back(torch.tensor([[1] * before + [2**22, -(2**22), 2**22 - 1, 3]], dtype=torch.int32))


def test_the_farthest_neighbours():
    steps = torch.zeros(1, 2**22, dtype=torch.int32)
    steps[0, -1] = 2**22
    assert comes_back(steps)
