"""TernGrad: each element becomes -1, 0 or 1 times the largest of its tensor, drawn so that the mean is right.

    |g| / s = 0.25      one draw in four is sign(g), the others 0;    s: the largest |g| of the tensor over all ranks,
                                                                         so that ranks may be summed as whole numbers
1. clip each tensor at 2.5 standard deviations, for s is as large as the one largest element; deviations from zero:
   from its own mean a tensor of one element, or of equal ones, has none, and would never be sent;
2. the scalers go round, one number a tensor, and everyone takes the largest;
3. trits go round, five a byte.

Law: n elements in t tensors, w bytes a number: (p - 1) (t w + ceil(n / 5)) bytes. Variance of an element: s |g| - g^2.
Clipping has a bias (towards zero), the draw has none; no memory is needed. Biases and the last layer are better sent
as they are. Paper: Wen, Xu, Yan, Wu, Wang, Chen, Li 2017, "TernGrad", algorithm 1 and section 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.collectives.agreement import Agreed
from lt_core.collectives.reducer import Reduced
from lt_core.comm.comm import Comm
from lt_core.compression.bucket import entries, flat, pieces
from lt_core.compression.draws import Draws
from lt_core.compression.gather import gathered, joined, sent_bytes
from lt_core.compression.packing import bytes_for, from_trits, trits


class TernGrad:
    """The mean of ternary draws. clip: in standard deviations of a tensor, None for none; seed: each rank's is its own.

    Errors: a clip that is not above 0.
    """

    def __init__(self, clip: float | None = 2.5, seed: int = 0) -> None:
        if clip is not None and not clip > 0:
            raise UserError("a clip in standard deviations", clip, "above 0, or None")
        self._clip, self._draws, self._agreed = clip, Draws(seed), Agreed(f"TernGrad clip={clip}")

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The mean of a bucket, of the shapes and dtypes that came in. Errors: those of `Mean`."""
        self._agreed(grads, comm)
        if not any(x.numel() for x in grads.values()):
            return Reduced(dict(grads), dict(grads))
        x = flat({name: clipped(x, self._clip) for name, x in grads.items()})
        sizes = torch.tensor([g.numel() for g in grads.values()], device=x.device)
        scales = torch.stack(gathered_largest(comm, x, sizes.tolist())).repeat_interleave(sizes)
        draws = ternary(x, scales, self._draws.uniform(x, comm.rank))
        codes = gathered(comm, trits(draws + 1))
        total = sum((from_trits(code, x.numel()).to(torch.int16) - 1 for code in codes), torch.tensor(0))
        return Reduced(pieces(total * scales / comm.size, grads), pieces(draws * scales, grads))

    def state_dict(self) -> dict[str, object]:
        """Where this rank's draws stand."""
        return {"draws": self._draws.state()}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what `state_dict` gave on this rank. Errors: another reducer's."""
        (draws,) = entries(state, "TernGrad", "draws")
        self._draws.load(draws)


def clipped(x: Tensor, deviations: float | None) -> Tensor:
    """x between minus and plus so many of its standard deviations, these over all elements, from zero."""
    if deviations is None or not x.numel():
        return x
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    bound = (torch.linalg.vector_norm(x, dtype=torch.float64) * (deviations / sqrt(x.numel()))).to(x.dtype)
    return torch.maximum(torch.minimum(x, bound), -bound)


def gathered_largest(comm: Comm, x: Tensor, sizes: list[int]) -> list[Tensor]:
    """The largest |x| of each tensor over all ranks; nan where there is one."""
    own = torch.stack([part.abs().max() if part.numel() else x.new_zeros(()) for part in x.split_with_sizes(sizes)])
    everyone = torch.stack([code.view(x.dtype) for code in gathered(comm, joined(own))])
    return list(everyone.amax(0))


def ternary(x: Tensor, scales: Tensor, uniform: Tensor) -> Tensor:
    """-1, 0 or 1 for each element, int8: its sign with the chance |x| / scale."""
    return (uniform * scales < x.abs()).to(torch.int8) * x.sign().nan_to_num_(nan=0).to(torch.int8)


def law_bytes(size: int, tensors: int, elements: int, itemsize: int) -> int:
    """How many bytes a rank sends for so many tensors and elements; itemsize: of the widest, at least 4."""
    return sent_bytes(size, tensors * itemsize + bytes_for(elements, 5))
