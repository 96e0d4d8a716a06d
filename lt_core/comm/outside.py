"""What `subset` gives to a rank that is no member: a communicator whose verbs raise, so that silence hides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.base.traffic import Traffic
from lt_core.comm.comm import Comm, Ends


class Outside:
    """The face of a group seen from outside: `rank` is -1."""

    ended = ""

    def __init__(self, whole: Comm, ranks: Sequence[int]) -> None:
        self.rank, self.size = -1, len(ranks)
        self.device: torch.device = whole.device
        self.backend, self.timeout_s = whole.backend, whole.timeout_s
        self.traffic = Traffic()
        self._who = f"rank {whole.rank} is no member of the group {list(ranks)}"

    def _refuse(self, verb: str) -> NoReturn:
        raise UserError(f"{verb}: {self._who}", attempt="ask `comm.rank >= 0` before using a subset")

    def exchange(self, sends: Ends, receives: Ends) -> None:
        """Raises."""
        self._refuse("exchange")

    def barrier(self) -> None:
        """Raises."""
        self._refuse("barrier")

    def subset(self, ranks: Sequence[int]) -> Comm:
        """Raises."""
        self._refuse("subset")

    def all_reduce(self, x: Tensor, mean: bool = False) -> None:
        """Raises."""
        self._refuse("all_reduce")

    def reduce_scatter(self, out: Tensor, x: Tensor) -> None:
        """Raises."""
        self._refuse("reduce_scatter")

    def all_gather(self, out: Tensor, x: Tensor) -> None:
        """Raises."""
        self._refuse("all_gather")

    def broadcast(self, x: Tensor, root: int) -> None:
        """Raises."""
        self._refuse("broadcast")

    def all_to_all(
        self, out: Tensor, x: Tensor, out_counts: Sequence[int] | None = None, counts: Sequence[int] | None = None
    ) -> None:
        """Raises."""
        self._refuse("all_to_all")

    def start(self, verb: str, *args: object) -> NoReturn:
        """Raises."""
        self._refuse(verb)

    def abort(self, reason: str) -> None:
        """Nothing: a group cannot be ended from outside."""
