"""Everyone's bytes to everyone: what cannot be summed on the way must be read by each rank.

rank 0 --a--> 1, 2, 3      Law: (p - 1) m bytes leave a rank whose code has m of them. A sum around a ring would
rank 1 --b--> 0, 2, 3      send 2 (p - 1) / p times the tensor, so a code that sends the part d of it pays below
...                        d = 2 / p only, and an (index, value) pair, twice as long, below 1 / p.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lt_core.comm.comm import Comm

LENGTH_BYTES = 8  # of the number that says how long a code is, where that depends on the data


def joined(*parts: Tensor) -> Tensor:
    """Tensors as one line of bytes; the wider elements first, so that each part can be read where it lies."""
    return torch.cat([x.contiguous().view(-1).view(torch.uint8) for x in parts])


def cut(code: Tensor, *parts: tuple[torch.dtype, int]) -> list[Tensor]:
    """What `joined` joined: parts of (dtype, elements)."""
    sizes = [dtype.itemsize * elements for dtype, elements in parts]
    return [x.view(dtype) for x, (dtype, _) in zip(code.split_with_sizes(sizes), parts)]


def gathered(comm: Comm, code: Tensor, lengths: Sequence[int] | None = None) -> list[Tensor]:
    """Everyone's code (m,) uint8, by rank, in one exchange; lengths: of each, where they differ."""
    lengths = lengths or [code.numel()] * comm.size
    codes = [code if r == comm.rank else code.new_empty(n) for r, n in enumerate(lengths)]
    others = [r for r in range(comm.size) if r != comm.rank]
    sends = [(code, r) for r in others if code.numel()]
    receives = [(codes[r], r) for r in others if lengths[r]]
    if sends or receives:
        comm.exchange(sends, receives)
    return codes


def gathered_any(comm: Comm, code: Tensor) -> list[Tensor]:
    """The same for codes whose length depends on the data: the lengths go first, 8 bytes each."""
    return gathered(comm, code, gathered_numbers(comm, code.numel()))


def gathered_numbers(comm: Comm, number: int) -> list[int]:
    """Everyone's whole number, by rank: 8 bytes each."""
    own = torch.tensor([number], device=comm.device).view(torch.uint8)
    return [int(code.view(torch.int64)) for code in gathered(comm, own)]


def sent_bytes(size: int, code_bytes: int, lengths: bool = False) -> int:
    """How many bytes leave a rank whose code has `code_bytes`; lengths: whether its length goes first."""
    return (size - 1) * (code_bytes + LENGTH_BYTES * lengths)
