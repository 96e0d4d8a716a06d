"""Two ranks compare their models when they first meet, before the weights of one are taken for those of the other.

rank 0   SEND: what it trains, in lines; then its first message
rank 1   ADD: other lines than mine? Mismatch, which names the first of them; Aborted, in the same words, on all others

Synchronous ways compare at the start, all at once. Here a rank may come late or never, and nobody should wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import zip_longest

import torch
from torch import Tensor

from lt_core.base.errors import Mismatch
from lt_core.comm.comm import Comm
from lt_core.comm.uncounted import uncounted


class Alike:
    """This rank's lines, and with whom they were compared."""

    def __init__(self, comm: Comm, lines: Sequence[str]) -> None:
        self._comm, self._lines = comm, lines
        self._met: set[int] = set()

    def meet(self, peer: int, sends: bool) -> None:
        """Before a message to `peer` (`sends`) or from it; both ends call it. The first time the receiver compares.

        Errors: it does, and finds something else.
        """
        if peer in self._met:
            return
        self._met.add(peer)
        with uncounted(self._comm):
            if sends:
                self._tell(peer)
            else:
                self._compare(peer, self._heard(peer))

    def _tell(self, peer: int) -> None:
        text = torch.tensor(list("\n".join(self._lines).encode()), dtype=torch.uint8, device=self._comm.device)
        self._comm.exchange([(torch.tensor([text.numel()], device=self._comm.device), peer)], [])
        self._comm.exchange([(text, peer)], [])

    def _heard(self, peer: int) -> list[str]:
        length = torch.zeros(1, dtype=torch.int64, device=self._comm.device)
        self._comm.exchange([], [(length, peer)])
        text = torch.zeros(int(length), dtype=torch.uint8, device=self._comm.device)
        self._comm.exchange([], [(text, peer)])
        return bytes(text.tolist()).decode().split("\n")

    def _compare(self, peer: int, theirs: Sequence[str]) -> None:
        for number, (here, there) in enumerate(zip_longest(self._lines, theirs, fillvalue="nothing")):
            if here != there:
                raise Mismatch(
                    "the ranks train different models",
                    f"as number {number}: rank {self._comm.rank} has {here}, rank {peer} has {there}",
                    "the same on every rank",
                    "build the model in the same way on every rank, from the same seed",
                )


def digest(weights: Tensor) -> str:
    """The bits of a vector in a few letters: the same where these are the same."""
    return sha256(bytes(weights.detach().contiguous().view(torch.uint8).cpu().numpy())).hexdigest()[:16]
