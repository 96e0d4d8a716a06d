"""QSGD: each element becomes a whole number of steps of its chunk's norm, drawn so that the mean is right.

    s = 4 levels     |v| / norm   0 ---- 1/4 --x-- 1/2 ---- 3/4 ---- 1       x = 0.3: four times in five 1/4, else 1/2
                     step         0       1         2        3       4

Chunks of d elements have a norm each; the last one is filled up with zeros, and a bucket of fewer than d is a chunk of
its own size. Few steps are not 0 where s is below the root of d, so that a code which skips
zeros (Elias) beats a fixed width. No memory is needed; the draw has no bias, but much noise where s is small:
Law of the error: E |Q - v|^2 = sum of (norm / s)^2 f (1 - f), f what a step is passed by; at most min(d / s^2,
sqrt(d) / s) |v|^2: with s = 1 and d = 1000 the noise is 24 times the signal.
Law of bytes: c chunks, w bytes a norm: (p - 1) (8 + c w + those of the code).
Paper: Alistarh, Grubic, Li, Tomioka, Vojnovic 2017, "QSGD", section 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.collectives.agreement import Agreed
from lt_core.collectives.reducer import Reduced
from lt_core.comm.comm import Comm
from lt_core.compression.bucket import entries, flat, mean_of, pieces
from lt_core.compression.draws import Draws
from lt_core.compression.elias import Elias
from lt_core.compression.gather import cut, gathered_any, joined, sent_bytes
from lt_core.compression.packing import bytes_for, from_numbers, numbers

MOST = 2**22  # levels or elements of a chunk: numbers that each code, and a float32, hold exactly


class Code(Protocol):
    """How steps from -levels to levels, (chunks, width) int32, become bytes."""

    def encode(self, steps: Tensor, levels: int) -> Tensor: ...
    def decode(self, code: Tensor, chunks: int, width: int, levels: int) -> Tensor: ...
    def law_bytes(self, steps: Tensor, levels: int) -> int: ...


class Packed:
    """As many bits for each step as the largest needs: `QSGD(levels=7, code=Packed())` takes 4."""

    def encode(self, steps: Tensor, levels: int) -> Tensor:
        """steps: (chunks, width) int32, in bytes."""
        return numbers((steps + levels).view(-1), (2 * levels).bit_length())

    def decode(self, code: Tensor, chunks: int, width: int, levels: int) -> Tensor:
        """What `encode` got."""
        return from_numbers(code, (2 * levels).bit_length(), chunks * width).view(chunks, width) - levels

    def law_bytes(self, steps: Tensor, levels: int) -> int:
        """How many bytes `encode` gives."""
        return (2 * levels).bit_length() * bytes_for(steps.numel(), 8)


class Steps(NamedTuple):
    """A bucket as norms (chunks,) and whole steps of them (chunks, width)."""

    norms: Tensor
    steps: Tensor


class QSGD:
    """The mean of whole steps. levels: s; chunk: elements with one norm; code: of the steps; seed: each rank's own.

    Errors: levels or elements of a chunk fewer than 1, or more than 2^22.
    """

    def __init__(self, levels: int = 7, chunk: int = 512, code: Code | None = None, seed: int = 0) -> None:
        if not all(hasattr(n, "__index__") and 1 <= n <= MOST for n in (levels, chunk)):
            expected = f"whole numbers, 1 to {MOST} of each"
            raise UserError("a norm is cut in levels, a bucket in chunks", f"{levels} and {chunk}", expected)
        self.levels, self.chunk, self.code = levels, chunk, Elias() if code is None else code
        self._draws = Draws(seed)
        self._agreed = Agreed(f"QSGD levels={levels} chunk={chunk} {type(self.code).__name__}")

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The mean of a bucket, of the shapes and dtypes that came in. Errors: those of `Mean`."""
        self._agreed(grads, comm)
        x = flat(grads)
        if not x.numel():
            return Reduced(dict(grads), dict(grads))
        codes = gathered_any(comm, self.encode(quantized(x, self.levels, self.chunk, self._draws, comm.rank)))
        decoded = [self.decode(code, x) for code in codes]
        return Reduced(pieces(mean_of(decoded), grads), pieces(decoded[comm.rank], grads))

    def encode(self, quantum: Steps) -> Tensor:
        """The bytes of a bucket: norms, then the code of the steps."""
        return joined(quantum.norms, self.code.encode(quantum.steps, self.levels))

    def decode(self, code: Tensor, like: Tensor) -> Tensor:
        """What `like` (n,) became: (n,)."""
        chunks = bytes_for(like.numel(), self.chunk)
        norm_bytes = chunks * like.dtype.itemsize
        norms, rest = cut(code, (like.dtype, chunks), (torch.uint8, code.numel() - norm_bytes))
        steps = self.code.decode(rest, chunks, min(self.chunk, like.numel()), self.levels)
        return (steps / self.levels * norms[:, None]).view(-1)[: like.numel()]

    def state_dict(self) -> dict[str, object]:
        """Where this rank's draws stand."""
        return {"draws": self._draws.state()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what `state_dict` gave on this rank. Errors: another reducer's."""
        (draws,) = entries(state, "QSGD", "draws")
        self._draws.load(draws)


def quantized(x: Tensor, levels: int, chunk: int, draws: Draws, rank: int) -> Steps:
    """x (n,) as norms and steps, in chunks of at most n elements."""
    chunk = min(chunk, x.numel())
    rows = torch.nn.functional.pad(x, (0, -x.numel() % chunk)).view(-1, chunk)
    norms = torch.linalg.vector_norm(rows, dim=1, dtype=torch.float64).to(x.dtype)  # squares of small ones vanish in 32
    steps = (rows.abs() / norms[:, None] * levels).nan_to_num_(nan=0, posinf=0)  # 0 / 0, and what is not finite
    steps = (steps + draws.uniform(rows, rank)).floor_().clamp_(max=levels)
    return Steps(norms, (steps * rows.sign().nan_to_num_(nan=0)).int())


def law_bytes(size: int, chunks: int, code_bytes: int, itemsize: int) -> int:
    """How many bytes a rank sends whose code takes `code_bytes`; itemsize: of the widest dtype, at least 4."""
    return sent_bytes(size, chunks * itemsize + code_bytes, lengths=True)
