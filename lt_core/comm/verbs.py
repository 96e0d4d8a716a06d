"""The verbs of a communicator that only knows how to begin them: each is begun and waited for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from lt_core.base.work import Work
from lt_core.comm.comm import Ends


class Verbs:
    """The face of `Comm` over `start`; `comm.Comm` says what each verb does."""

    def start(self, verb: str, *args: Any) -> Work:
        """The verb of that name, begun."""
        raise NotImplementedError

    def exchange(self, sends: Ends, receives: Ends) -> None:
        """Send each (tensor, peer) and fill each (buffer, peer): one batch, over when all of it is."""
        self.start("exchange", sends, receives).wait()

    def barrier(self) -> None:
        """Hold until every rank is here."""
        self.start("barrier").wait()

    def all_reduce(self, x: Tensor) -> None:
        """`x` becomes the sum over ranks."""
        self.start("all_reduce", x).wait()

    def reduce_scatter(self, out: Tensor, x: Tensor) -> None:
        """`out` becomes part `rank` of the sum of `x`."""
        self.start("reduce_scatter", out, x).wait()

    def all_gather(self, out: Tensor, x: Tensor) -> None:
        """`out` becomes every rank's `x`, by rank."""
        self.start("all_gather", out, x).wait()

    def broadcast(self, x: Tensor, root: int) -> None:
        """`x` becomes rank `root`'s."""
        self.start("broadcast", x, root).wait()

    def all_to_all(
        self, out: Tensor, x: Tensor, out_counts: Sequence[int] | None = None, counts: Sequence[int] | None = None
    ) -> None:
        """Part r of `x` goes to rank r; equal parts, or `counts` rows of dim 0 each."""
        self.start("all_to_all", out, x, out_counts, counts).wait()
