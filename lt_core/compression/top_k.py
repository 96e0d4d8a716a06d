"""Top-k: the k largest elements of a bucket travel as pairs of index and value; threshold: those above a bound.

    x      .1  -4   .2   3        k = 2      (1, -4) (3, 3)       chosen over the whole bucket, not tensor by tensor;
    sent    0  -4    0   3                                        exactly k, ties to the lower index

What stays behind must be remembered, or it is never learned: wrap it, `ErrorFeedback(TopK(0.01))`. Contraction: the
rest has at most 1 - k / n of the square norm. Law: k pairs of 4 + w bytes: (p - 1) k (4 + w), which is as much as the
dense ring's at a density of 1 / p if w is 4. A threshold's k depends on the data, and a ratio by step on who computes
it: 8 bytes more say how many come.
Papers: Aji and Heafield 2017, "Sparse communication"; Alistarh and others 2018, "The convergence of sparsified
gradient methods".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.collectives.agreement import Agreed
from lt_core.collectives.reducer import Reduced
from lt_core.comm.comm import Comm
from lt_core.compression import sparse
from lt_core.compression.bucket import entries, flat, pieces
from lt_core.compression.gather import sent_bytes
from lt_core.compression.ratio import Ratio, Steps, kept, kept_alike, named


class TopK:
    """The mean of each rank's largest elements. ratio: k / n, or what gives it for step 0, 1, ..; k is at least 1.

    Errors: a ratio of 0 or less, or above 1; `Mismatch` where it gives another k on another rank.
    """

    def __init__(self, ratio: Ratio = 0.01) -> None:
        self.ratio, self._steps, self._agreed = ratio, Steps(), Agreed(f"TopK {named(ratio)}")

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The mean of a bucket, of the shapes and dtypes that came in. Errors: those of `Mean`."""
        self._agreed(grads, comm)
        x = flat(grads)
        count = kept_alike(comm, self.ratio, self._steps.now(self.ratio, grads), x.numel())
        mean, sent = sparse.mean(comm, x, sparse.largest(x, count), alike=True)
        return Reduced(pieces(mean, grads), pieces(sent, grads))

    def undo(self, names: Iterable[str]) -> None:
        """Do not count the last step of these tensors."""
        self._steps.undo(names)

    def state_dict(self) -> dict[str, object]:
        """How many steps each tensor has made."""
        return {"steps": dict(self._steps.done)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what `state_dict` gave. Errors: another reducer's."""
        (steps,) = entries(state, "TopK", "steps")
        self._steps.load(steps)


class Threshold:
    """The mean of what is at least `bound` in size on its rank: `Threshold(1e-3)`.

    Errors: a bound that is not above 0.
    """

    def __init__(self, bound: float) -> None:
        if not bound > 0:
            raise UserError("a threshold lets pass what is larger", bound, "a bound above 0")
        self.bound, self._agreed = bound, Agreed(f"Threshold {bound:g}")

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The mean of a bucket, of the shapes and dtypes that came in. Errors: those of `Mean`."""
        self._agreed(grads, comm)
        x = flat(grads)
        above = ~(x.abs() < self.bound)  # nan is not below, and is seen by all
        mean, sent = sparse.mean(comm, x, above.nonzero().view(-1), alike=False)
        return Reduced(pieces(mean, grads), pieces(sent, grads))

    def state_dict(self) -> dict[str, object]:
        """Nothing: each step stands alone."""
        return {}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Accept what `state_dict` gives. Errors: anything else."""
        entries(state, "Threshold")


def bound_for(x: Tensor, ratio: float, generator: torch.Generator, sample: float = 0.001) -> float:
    """The bound above which about the part `ratio` of |x| lies, from a sample as Aji and Heafield take it."""
    count = max(round(sample * x.numel()), 1)
    drawn = torch.randint(x.numel(), (count,), generator=generator, device=x.device)
    return float(x.reshape(-1)[drawn].abs().float().topk(kept(ratio, count)).values[-1])


def law_bytes(size: int, count: int, itemsize: int, lengths: bool = False) -> int:
    """How many bytes a rank sends that sends `count` pairs; lengths: whether it says how many first (a
    threshold, a ratio by step)."""
    return sent_bytes(size, sparse.code_bytes(count, itemsize), lengths)
