"""Half: 16 bits an element instead of 32; halves can be summed on the way, so the message stays a ring's.

    x / p --round--> fp16 --sum over ranks, rounded at each hop--> mean           divided first: a sum overflows late

Law: n elements, p ranks: 2 n 2 (p - 1) / p bytes. Error: at most 2^-11 |x| a rounding in float16 (2^-8 in bfloat16).
Below 6e-5 (in x / p) float16 has steps of 6e-8, and what is below 3e-8 becomes zero: with `ErrorFeedback` it adds up
until it is not. The first rounding is what is kept there; those at the hops, of sums that no rank knows, are lost as in
any sum of halves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.collectives import ring
from lt_core.collectives.agreement import Agreed
from lt_core.collectives.reducer import Mean, Reduced
from lt_core.comm.comm import Comm
from lt_core.compression.bucket import entries, flat, pieces, wide


class Half:
    """The mean through 16 bits: `Half()` in float16, `Half(torch.bfloat16)` with float32's range and 8 digits.

    schedule_of: an all-reduce as in `Mean`. Errors: a dtype that has no 16 bits.
    """

    def __init__(
        self, dtype: torch.dtype = torch.float16, schedule_of: Callable[[int], Schedule] | None = None
    ) -> None:
        if dtype not in (torch.float16, torch.bfloat16):
            raise UserError("half a float has 16 bits", dtype, "torch.float16 or torch.bfloat16")
        self._dtype, self._agreed, self._mean = dtype, Agreed(f"Half {dtype}"), Mean(schedule_of)

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The mean of a bucket, of the shapes and dtypes that came in; `sent` is the gradient as rounded here.

        What is too large for float16 (above 65,504 in x / p, or in their sum at a hop) is inf in the mean, on every
        rank; `ErrorFeedback` then remembers nothing of that step, which is to be skipped. Errors: those of `Mean`.
        """
        self._agreed(grads, comm)
        short = (flat(grads) / comm.size).to(self._dtype)
        sent = pieces(short.to(wide(grads)) * comm.size, grads)
        return Reduced(pieces(self._mean.total(short, comm).to(wide(grads)), grads), sent)

    def state_dict(self) -> dict[str, object]:
        """Nothing: each step stands alone."""
        return {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Accept what `state_dict` gives. Errors: anything else."""
        entries(state, "Half")


def law_bytes(size: int, elements: int, rank: int) -> int:
    """How many bytes `rank` sends for a bucket of so many elements."""
    return ring.law_bytes(size, elements, 2, rank)
