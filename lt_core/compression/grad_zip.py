"""GradZip: one thin factor a step, by alternating least squares; the other is left from the step before.

    M (n, m) ~ U V^T      even steps   U = M V (V^T V + l I)^-1     then the mean of U over ranks
                          odd steps    V = M^T U (U^T U + l I)^-1   then the mean of V

Each half-step is linear in M, so the mean of the factors is the factor of the mean; one message a step, half of
PowerSGD's. With l = 0 and V orthonormal, U is PowerSGD's P.
Law, over a ring, v other elements, w bytes: 2 (p - 1) / p w (sum of r n + v) in even steps, of r m in odd ones.
What it lacks must be remembered: `ErrorFeedback(GradZip(2))`. A factor of dependent columns (zero gradients) gives way
to an orthonormal one, or it would stay zero for ever.
Paper: Cho, Muthusamy, Nemanich, Puri 2019, "GradZip". We have not read it again: half-steps and bytes are our own
reading of its name and method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.collectives import ring
from lt_core.collectives.agreement import Agreed
from lt_core.collectives.reducer import Mean, Reduced
from lt_core.comm.comm import Comm
from lt_core.compression.bucket import Memory, entries, finite, tensors, wide
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


class GradZip:
    """The mean of matrices by factors of `rank` columns, one a step; wrap it: `ErrorFeedback(GradZip(2))`.

    ridge: l, which keeps factors small. Other arguments: those of `PowerSGD`. Errors: a rank below 1, a negative ridge.
    """

    def __init__(
        self,
        rank: int = 2,
        ridge: float = 0.0,
        least_saving: float = LEAST_SAVING,
        seed: int = 0,
        schedule_of: Callable[[int], Schedule] | None = None,
    ) -> None:
        if not ridge >= 0:
            raise UserError("a ridge that keeps factors small", ridge, "0 or more")
        self.rank, self.ridge, self.least_saving, self._seed = checked(rank), ridge, least_saving, seed
        self._fixed, self._odd = Memory("factor"), dict[str, bool]()
        self._products, self._mean = Products(), Mean(schedule_of)
        self._agreed = Agreed(f"GradZip rank={rank} ridge={ridge:g} least_saving={least_saving:g} seed={seed}")

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The mean of a bucket, of the shapes and dtypes that came in, in memory that the next call uses again.

        Errors: those of `Mean`; a matrix that changed its shape.
        """
        self._agreed(grads, comm)
        dtype = wide(grads)
        thick = matrices(grads, self.rank, self.least_saving, dtype)
        turned = {k: x.t() if self._odd.get(k, False) else x for k, x in thick.items()}  # (moving, fixed side)
        bases = {k: basis(self._start(k, x)) for k, x in turned.items()}
        shapes = {k: (self.rank, len(turned[k])) if k in turned else x.shape for k, x in grads.items()}
        message = Message(shapes, torch.empty(0, dtype=dtype, device=comm.device))
        for name, x in grads.items():
            message.parts[name].copy_(
                half_step(turned[name], bases[name], self.ridge) if name in turned else x.detach()
            )
        moved, mean = message.mean(self._mean, comm), dict[str, Tensor]()
        for name, x in grads.items():
            mean[name] = self._product(name, moved[name], bases[name], x) if name in turned else moved[name].to(x.dtype)
        return Reduced(mean, {k: mean[k] if k in thick else grads[k] for k in grads})

    def _product(self, name: str, moved: Tensor, base: Tensor, x: Tensor) -> Tensor:
        """The mean of a matrix; the factor that moved is fixed in the next step."""
        odd = self._odd.get(name, False)
        product = self._products(name, *((base, moved) if odd else (moved, base)), x)
        if finite(moved):
            self._fixed.held[name], self._odd[name] = moved, not odd
        return product

    def _start(self, name: str, x: Tensor) -> Tensor:
        if name not in self._fixed.held:
            self._fixed.held[name] = first(name, self.rank, x.shape[1], x, self._seed)
        return self._fixed.of(name, x.new_empty(self.rank, x.shape[1]))

    def state_dict(self) -> dict[str, object]:
        """The factor of each matrix that the next step keeps, and which one it is; the same on every rank."""
        odd = {name: torch.tensor(odd) for name, odd in self._odd.items()}
        return {"fixed": self._fixed.state(), "odd": odd}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what `state_dict` gave. Errors: another reducer's."""
        fixed, odd = entries(state, "GradZip", "fixed", "odd")
        self._fixed.load(fixed)
        sides = tensors("side", odd)
        if any(x.numel() != 1 for x in sides.values()):
            raise UserError("a factor is of one side", "tensors of several elements", "one number by name")
        self._odd = {name: bool(x) for name, x in sides.items()}


def half_step(x: Tensor, fixed: Tensor, ridge: float) -> Tensor:
    """The factor (r, n) that with `fixed` (r, m) comes nearest to x (n, m): least squares, with a ridge."""
    gram = fixed @ fixed.t() + ridge * torch.eye(len(fixed), dtype=fixed.dtype, device=fixed.device)
    factor: Tensor = torch.linalg.solve(gram, fixed @ x.t())
    return factor


def basis(factor: Tensor) -> Tensor:
    """The factor (r, m), or orthonormal rows in its place where its own are dependent."""
    weights = torch.linalg.eigvalsh((factor @ factor.t()).double())
    dependent = weights[0] <= 1e3 * torch.finfo(factor.dtype).eps * weights[-1]
    return orthonormal(factor) if bool(dependent) else factor


def law_bytes(
    size: int,
    shapes: Sequence[Sequence[int]],
    approximation: int,
    itemsize: int,
    rank: int,
    step: int = 0,
    least_saving: float = LEAST_SAVING,
) -> int:
    """How many bytes `rank` of `size` sends in this step for tensors of these shapes."""
    chosen = [sides(s) for s in shapes if thin(s, approximation, least_saving)]
    plain = sum(torch.Size(s).numel() for s in shapes if not thin(s, approximation, least_saving))
    moving = approximation * sum(side[step % 2] for side in chosen)
    return ring.law_bytes(size, plain + moving, itemsize, rank)
