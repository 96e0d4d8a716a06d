"""Coarse-grained sparse communication (GradientFlow): all ranks send the same chunks, so that these sum densely.

    chunk        0     1     2     3          1. the L1 norm of each chunk, summed over ranks: a tiny message;
    |x| rank 0   5     1     9     2          2. all ranks choose the same: the largest of these sums;
    |x| rank 1   4     1     1     8          3. these chunks, packed, in one dense all-reduce: no index travels, and
    sum          9     2    10    10              the message does not grow with the ranks.
    chosen                   *     *

Law, over a ring, c chunks, n' elements in the chosen ones, w bytes: 2 (p - 1) / p (c w + n' w), and for a ratio by step
8 (p - 1) more.
What stays behind must be remembered: `ErrorFeedback(Coarse(0.1))`; GradientFlow's own, with momentum that waits,
is `MomentumCorrection(Coarse(0.1))`, and its warm-up a ratio that falls with the steps.
Paper: Sun, Feng, Han, Yan, Wen 2019, "Optimizing network performance for distributed DNN training", section 3.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.collectives import ring
from lt_core.collectives.agreement import Agreed
from lt_core.collectives.reducer import Mean, Reduced
from lt_core.comm.comm import Comm
from lt_core.compression.bucket import entries, flat, pieces
from lt_core.compression.gather import sent_bytes
from lt_core.compression.packing import bytes_for
from lt_core.compression.ratio import Ratio, Steps, kept_alike, named
from lt_core.compression.sparse import largest

CHUNK = 32_768  # elements


class Coarse:
    """The mean of the chunks that are largest over all ranks. ratio: which part of them, or what gives it for a step.

    chunk: its elements, the last one may have fewer. schedule_of: an all-reduce as in `Mean`.
    Errors: a ratio of 0 or less, or above 1; `Mismatch` where it gives another part on another rank; an empty chunk.
    """

    def __init__(
        self, ratio: Ratio = 0.1, chunk: int = CHUNK, schedule_of: Callable[[int], Schedule] | None = None
    ) -> None:
        if not hasattr(chunk, "__index__") or chunk < 1:
            raise UserError("a bucket is cut in chunks", chunk, "a whole number, at least 1 element each")
        self.ratio, self.chunk, self._steps = ratio, chunk, Steps()
        self._mean, self._agreed = Mean(schedule_of), Agreed(f"Coarse {named(ratio)} chunk={chunk}")

    def reduce(self, grads: Mapping[str, Tensor], comm: Comm) -> Reduced:
        """The mean of a bucket, of the shapes and dtypes that came in. Errors: those of `Mean`."""
        self._agreed(grads, comm)
        x = flat(grads)
        ratio = self._steps.now(self.ratio, grads)
        if not x.numel():
            return Reduced(dict(grads), dict(grads))
        chosen = self._chosen(x, ratio, comm)
        mean, sent = torch.zeros_like(x), torch.zeros_like(x)
        sent[chosen] = x[chosen]
        mean[chosen] = self._mean.average(x[chosen], comm)
        return Reduced(pieces(mean, grads), pieces(sent, grads))

    def _chosen(self, x: Tensor, ratio: float, comm: Comm) -> Tensor:
        """Which elements travel: (n,) bool, the same on every rank."""
        chunks = bytes_for(x.numel(), self.chunk)
        sizes = torch.nn.functional.pad(x.abs(), (0, -x.numel() % self.chunk)).view(chunks, -1).sum(1)
        sizes = self._mean.average(sizes, comm)
        here = torch.zeros(chunks, dtype=torch.bool, device=x.device)
        here[largest(sizes, kept_alike(comm, self.ratio, ratio, chunks))] = True
        return here.repeat_interleave(self.chunk)[: x.numel()]

    def undo(self, names: Iterable[str]) -> None:
        """Do not count the last step of these tensors."""
        self._steps.undo(names)

    def state_dict(self) -> dict[str, object]:
        """How many steps each tensor has made."""
        return {"steps": dict(self._steps.done)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what `state_dict` gave. Errors: another reducer's."""
        (steps,) = entries(state, "Coarse", "steps")
        self._steps.load(steps)


def law_bytes(size: int, chunks: int, elements: int, itemsize: int, rank: int, by_step: bool = False) -> int:
    """How many bytes `rank` sends: so many norms, the elements of the chosen chunks; by_step: how many these are."""
    dense = ring.law_bytes(size, chunks, itemsize, rank) + ring.law_bytes(size, elements, itemsize, rank)
    return dense + sent_bytes(size, 0, lengths=by_step)
