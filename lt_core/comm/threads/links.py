"""Messages between threads: the two ends of a message meet on their link in order, and whoever comes second copies.

So a send is over when it was taken, and nothing that was begun needs a thread of its own.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import NamedTuple

import torch
from torch import Tensor

from lt_core.base.errors import Mismatch
from lt_core.comm import calls
from lt_core.comm.comm import Ends
from lt_core.comm.threads.hub import Begun, Hub


class _End(NamedTuple):
    begun: Begun
    sends: bool
    x: Tensor


class Links:
    """The links of one hub. A link's queue holds ends of one kind only: the other kind would have met them."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._queues: dict[tuple[int, int], deque[_End]] = defaultdict(deque)

    def exchange(self, rank: int, sends: Ends, receives: Ends) -> Begun:
        """Post all ends at once, and copy what has met its other end."""
        to, source = [peer for _, peer in sends], [peer for _, peer in receives]
        begun = Begun(self._hub, rank, to + source, len(to + source), lambda: calls.exchange(to, source))
        with self._hub.lock:
            self._hub.check()
            met = [self._post((rank, peer), _End(begun, True, x)) for x, peer in sends]
            met += [self._post((peer, rank), _End(begun, False, x)) for x, peer in receives]
        for pair in met:
            if pair:
                error = _copy(*pair)
                self._hub.over(*((end.begun, error) for end in pair))
        return begun

    def _post(self, link: tuple[int, int], end: _End) -> tuple[_End, _End] | None:
        queue = self._queues[link]
        if not queue or queue[0].sends == end.sends:
            queue.append(end)
            return None
        other = queue.popleft()
        other.begun.missing.remove(end.begun.rank)
        end.begun.missing.remove(other.begun.rank)
        return (end, other) if end.sends else (other, end)


def _copy(offer: _End, want: _End) -> Exception | None:
    sent, taken = offer.x, want.x
    if (sent.numel(), sent.dtype) != (taken.numel(), taken.dtype):
        return Mismatch(
            f"rank {offer.begun.rank} sends rank {want.begun.rank} what does not fit its buffer",
            f"{sent.numel()} {sent.dtype} sent, room for {taken.numel()} {taken.dtype}",
            "one size and dtype",
        )
    with torch.inference_mode():  # so that tensors of either kind can be written, whatever mode their own rank is in
        taken.view(-1).copy_(sent.view(-1))
    return None
