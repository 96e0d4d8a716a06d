"""PowerSGD: a matrix as the product of two thin ones, found by one step of power iteration that ranks take together.

    M (n, m)   1. P = M Q          Q (m, r): what the last step has left
               2. P's mean over ranks, by one all-reduce (vectors, which are not compressed, go along)
               3. P orthonormal
               4. Q = M^T P, and its mean by a second all-reduce
               5. the mean of M is P Q^T

1 and 4 are linear in M, hence P and Q are those of the *mean* of all ranks' M: nobody's own matrix is approximated, and
the factors are summed on the way. Kept from step to step, Q turns towards the leading directions (warm start).
Law, over a ring, matrices (n, m), v other elements, w bytes: 2 (p - 1) / p w (sum of r n + v), and of r m.
What it lacks must be remembered: `ErrorFeedback(PowerSGD(2))`. `sent` is the mean, on every rank. Algorithm 2 takes
what each rank's own Q gives; the memories then differ, but not their mean over ranks, and nothing else acts.
Paper: Vogels, Karimireddy, Jaggi 2019, "PowerSGD", algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from lt_core.base.schedule import Schedule
from lt_core.collectives import ring
from lt_core.collectives.agreement import Agreed
from lt_core.collectives.reducer import Mean, Reduced
from lt_core.comm.comm import Comm
from lt_core.compression.bucket import Memory, entries, finite, wide
from lt_core.compression.low_rank import (
    LEAST_SAVING,
    Message,
    Products,
    checked,
    first,
    matrices,
    orthonormal,
    sides,
    thin,
)


class PowerSGD:
    """The mean of matrices by two factors of `rank` columns; wrap it: `ErrorFeedback(PowerSGD(2))`.

    least_saving: a matrix that would become less than so many times shorter travels as it is, and so does one whose
    smaller side the rank reaches. seed: of the first Q, alike on all ranks. schedule_of: an all-reduce as in `Mean`.
    Errors: a rank below 1.
    """

    def __init__(
        self,
        rank: int = 2,
        least_saving: float = LEAST_SAVING,
        seed: int = 0,
        schedule_of: Callable[[int], Schedule] | None = None,
    ) -> None:
        self.rank, self.least_saving, self._seed = checked(rank), least_saving, seed
        self._right, self._products, self._mean = Memory("factor"), Products(), Mean(schedule_of)
        self._agreed = Agreed(f"PowerSGD rank={rank} least_saving={least_saving:g} seed={seed}")

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The mean of a bucket, of the shapes and dtypes that came in, in memory that the next call uses again.

        Errors: those of `Mean`; a matrix that changed its shape.
        """
        self._agreed(grads, comm)
        dtype = wide(grads)
        thick = matrices(grads, self.rank, self.least_saving, dtype)
        others = {k: x for k, x in grads.items() if k not in thick}
        like = torch.empty(0, dtype=dtype, device=comm.device)
        left, plain = self._left(thick, others, like, comm)
        spoiled = {name for name, factor in left.items() if not finite(factor)}  # on one rank: seen by all
        left = {name: orthonormal(x.zero_() if name in spoiled else x) for name, x in left.items()}
        right = Message({name: (self.rank, x.shape[1]) for name, x in thick.items()}, like)
        for name, x in thick.items():
            torch.mm(left[name], x, out=right.parts[name])
        mean = dict(plain)
        for name, factor in right.mean(self._mean, comm).items():
            mean[name] = self._products(name, left[name], factor, grads[name])
            if name in spoiled:
                mean[name].fill_(torch.nan)
            elif finite(factor):
                self._right.held[name] = factor
        return Reduced({k: mean[k] for k in grads}, {k: mean[k] if k in thick else grads[k] for k in grads})

    def _left(
        self, matrices: Mapping[str, Tensor], others: Mapping[str, Tensor], like: Tensor, comm: Comm
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """The mean of each left factor (r, n), and of each tensor that is not compressed, in one message."""
        shapes = {k: (self.rank, len(x)) for k, x in matrices.items()} | {k: x.shape for k, x in others.items()}
        message = Message(shapes, like)
        for name, x in matrices.items():
            torch.mm(orthonormal(self._start(name, x)), x.t(), out=message.parts[name])
        for name, x in others.items():
            message.parts[name].copy_(x.detach())
        mean = message.mean(self._mean, comm)
        return {k: mean[k] for k in matrices}, {k: mean[k].to(x.dtype) for k, x in others.items()}

    def _start(self, name: str, x: Tensor) -> Tensor:
        if name not in self._right.held:
            self._right.held[name] = first(name, self.rank, x.shape[1], x, self._seed)
        return self._right.of(name, x.new_empty(self.rank, x.shape[1]))

    def state_dict(self) -> dict[str, object]:
        """The factors that the next step begins with; the same on every rank."""
        return {"right": self._right.state()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what `state_dict` gave. Errors: another reducer's."""
        (right,) = entries(state, "PowerSGD", "right")
        self._right.load(right)


def elements(shapes: Sequence[Sequence[int]], rank: int, least_saving: float = LEAST_SAVING) -> tuple[int, int]:
    """How many elements the two messages have for tensors of these shapes."""
    chosen = [sides(s) for s in shapes if thin(s, rank, least_saving)]
    plain = sum(torch.Size(s).numel() for s in shapes if not thin(s, rank, least_saving))
    return plain + rank * sum(n for n, _ in chosen), rank * sum(m for _, m in chosen)


def law_bytes(
    size: int,
    shapes: Sequence[Sequence[int]],
    approximation: int,
    itemsize: int,
    rank: int,
    least_saving: float = LEAST_SAVING,
) -> int:
    """How many bytes `rank` of `size` sends for tensors of these shapes; approximation: the rank of the factors."""
    return sum(ring.law_bytes(size, n, itemsize, rank) for n in elements(shapes, approximation, least_saving))
