"""The verbs of a communicator that knows one way to call them all: unless it says otherwise, begin and wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from lt_core.base.work import Work
from lt_core.comm.comm import Ends


class Verbs:
    """The face of `Comm` over `call` and `start`; `comm.Comm` says what each verb does."""

    def start(self, verb: str, *args: Any) -> Work:
        """The verb of that name, begun."""
        raise NotImplementedError

    def call(self, verb: str, *args: Any) -> None:
        """The verb of that name, until it is over."""
        self.start(verb, *args).wait()

    def exchange(self, sends: Ends, receives: Ends) -> None:
        """Send each (tensor, peer) and fill each (buffer, peer): one batch, over when all of it is."""
        self.call("exchange", sends, receives)

    def barrier(self) -> None:
        """Hold until every rank is here."""
        self.call("barrier")

    def all_reduce(self, x: Tensor, mean: bool = False) -> None:
        """`x` becomes the sum over ranks, or their mean."""
        self.call("all_reduce", x, mean)

    def reduce_scatter(self, out: Tensor, x: Tensor) -> None:
        """`out` becomes part `rank` of the sum of `x`."""
        self.call("reduce_scatter", out, x)

    def all_gather(self, out: Tensor, x: Tensor) -> None:
        """`out` becomes every rank's `x`, by rank."""
        self.call("all_gather", out, x)

    def broadcast(self, x: Tensor, root: int) -> None:
        """`x` becomes rank `root`'s."""
        self.call("broadcast", x, root)

    def all_to_all(
        self, out: Tensor, x: Tensor, out_counts: Sequence[int] | None = None, counts: Sequence[int] | None = None
    ) -> None:
        """Part r of `x` goes to rank r; equal parts, or `counts` rows of dim 0 each."""
        self.call("all_to_all", out, x, out_counts, counts)
