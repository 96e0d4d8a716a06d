"""Elias' omega code: a whole number in few bits if it is small, and no table that both ends must know.

    1  0          4  10 100 0        A group of bits is a number, which says how long the next group is; the first has
    2  10 0       8  11 1000 0       two bits. A 0 where a group would begin (each begins with 1) ends it.
    3  11 0      16  10 100 10000 0

A chunk of levels: for each that is not 0 its distance from the one before, a bit for its sign, its size.

    0 0 2 0 -1     distance 3, +, 2;  distance 2, -, 1          11 0 0 10 0   10 0 1 0      12 bits, 2 bytes

Law: L(1) = 1, L(k) = b + L(b - 1), b the bits of k. A chunk takes 4 bytes that say how many bits it has, and the bytes
that hold the sum of L(distance) + 1 + L(size). Papers: Elias 1975; Alistarh and others 2017, appendix A.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

BLOCK = 4096  # chunks that are coded at once: bits are wide while they are being placed
WINDOW = 40  # bits that are read at once, of which at least 33 lie behind any place: numbers up to 2^22
COUNT = torch.int32  # of the bits of a chunk


class Elias:
    """Levels in Elias' omega code: `QSGD(levels=1, code=Elias())`."""

    def encode(self, steps: Tensor, levels: int) -> Tensor:
        """steps: (chunks, d) int32. How many bits each chunk has, then these, each chunk from a new byte on."""
        coded = [_encode(block) for block in torch.split(steps, BLOCK)]
        return torch.cat([*(counts.to(COUNT).view(torch.uint8) for counts, _ in coded), *(line for _, line in coded)])

    def decode(self, code: Tensor, chunks: int, width: int, levels: int) -> Tensor:
        """What `encode` got: (chunks, width) int32."""
        head, body = code.split_with_sizes([COUNT.itemsize * chunks, code.numel() - COUNT.itemsize * chunks])
        return _decode(body, head.clone().view(COUNT).long(), width)

    def law_bytes(self, steps: Tensor, levels: int) -> int:
        """How many bytes `encode` gives, from the numbers alone."""
        total = COUNT.itemsize * len(steps)
        for row in steps.tolist():
            places = [k for k, level in enumerate(row) if level]
            distances = [here - before for before, here in zip([-1, *places], places)]
            total += -(-sum(law_bits(n) + 1 + law_bits(abs(row[k])) for n, k in zip(distances, places)) // 8)
        return total


@cache
def law_bits(number: int) -> int:
    """How many bits a whole number from 1 on takes: L(k)."""
    return 1 if number == 1 else number.bit_length() + law_bits(number.bit_length() - 1)


def omega(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """The code word of each number (from 1 on) as a whole number, and its bits."""
    words, bits, rest = torch.zeros_like(numbers), torch.ones_like(numbers), numbers
    while bool((more := rest > 1).any()):
        words = torch.where(more, words | (rest << bits), words)
        length = torch.frexp(rest.double()).exponent.long()
        bits, rest = torch.where(more, bits + length, bits), torch.where(more, length - 1, 1)
    return words, bits


def _encode(steps: Tensor) -> tuple[Tensor, Tensor]:
    """The bits of each chunk, and the bytes of all of them one after the other."""
    rows, places = steps.nonzero(as_tuple=True)
    values = steps[rows, places].long()
    first = torch.ones_like(rows).bool()
    first[1:] = rows[1:] != rows[:-1]
    distances = places - torch.where(first, -1, places.roll(1))
    (far, far_bits), (size, size_bits) = omega(distances), omega(values.abs())
    words = torch.stack([far, (values < 0).long(), size], 1).view(-1)
    bits = torch.stack([far_bits, torch.ones_like(size_bits), size_bits], 1).view(-1)
    counts = torch.zeros(len(steps), dtype=torch.long, device=steps.device)
    counts.index_add_(0, rows.repeat_interleave(3), bits)
    gaps = -counts % 8  # behind each chunk
    starts = bits.cumsum(0) - bits + (gaps.cumsum(0) - gaps)[rows].repeat_interleave(3)
    return counts, _placed(words, bits, starts, int((counts + gaps).sum()) // 8)


def _placed(words: Tensor, bits: Tensor, starts: Tensor, nbytes: int) -> Tensor:
    """Words of so many bits, each at its start, in bytes; the first bit is the highest of a byte."""
    line = torch.zeros(8 * nbytes, dtype=torch.uint8, device=words.device)
    for k in range(int(bits.max()) if bits.numel() else 0):
        here = bits > k
        words, bits, starts = words[here], bits[here], starts[here]
        line[starts + k] = ((words >> (bits - 1 - k)) & 1).to(torch.uint8)
    eights = line.view(-1, 8)
    return torch.stack([eights[:, k] << (7 - k) for k in range(8)]).sum(0, dtype=torch.uint8)


def _decode(body: Tensor, counts: Tensor, width: int) -> Tensor:
    """All chunks side by side, a level at a time; counts: the bits of each."""
    steps = torch.zeros(len(counts), width, dtype=torch.int32, device=body.device)
    body = torch.cat([body, body.new_zeros(WINDOW // 8)]).long()
    whole = 8 * ((counts + 7) // 8)
    at = whole.cumsum(0) - whole
    ends, place = at + counts, torch.full_like(at, -1)
    rows = counts.nonzero().view(-1)
    while rows.numel():
        distance, used = _number(_window(body, at[rows]))
        negative = _window(body, at[rows] + used) >> (WINDOW - 1)
        size, more = _number(_window(body, at[rows] + used + 1))
        place[rows] += distance
        steps[rows, place[rows]] = torch.where(negative == 1, -size, size).int()
        at[rows] += used + 1 + more
        rows = rows[at[rows] < ends[rows]]
    return steps


def _window(body: Tensor, at: Tensor) -> Tensor:
    """The bits from each place on."""
    word = torch.zeros_like(at)
    for k in range(WINDOW // 8):
        word = (word << 8) | body[(at >> 3) + k]
    return (word << (at & 7)).bitwise_and(2**WINDOW - 1)


def _number(word: Tensor) -> tuple[Tensor, Tensor]:
    """The number with which each window begins, and the bits that it takes."""
    number, used = torch.ones_like(word), torch.zeros_like(word)
    while bool((more := word >> (WINDOW - 1) == 1).any()):
        group = torch.where(more, number + 1, 0)
        number = torch.where(more, word >> (WINDOW - group).clamp(max=63), number)
        word, used = (word << group) & (2**WINDOW - 1), used + group
    return number, used + 1
