"""Ranks as threads of one process: for unit tests, and to try a thing at once.

All of a rank's verbs go through `start`; what they do stands in `hub`, `links` and `rooms`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor

from lt_core.base.traffic import Traffic
from lt_core.base.work import Work
from lt_core.comm import calls, checks, laws
from lt_core.comm.comm import Comm, Ends
from lt_core.comm.outside import Outside
from lt_core.comm.threads import rank_order
from lt_core.comm.threads.hub import Begun, Hub
from lt_core.comm.threads.links import Links
from lt_core.comm.threads.rooms import Rooms
from lt_core.comm.verbs import Verbs


class Meeting:
    """What the ranks of one communicator share."""

    def __init__(self, hub: Hub) -> None:
        self.hub, self.links, self.rooms = hub, Links(hub), Rooms(hub)


class Threads(Verbs):
    """A communicator whose ranks are threads. A send is over when it was taken; sums run in the order of ranks."""

    backend = "threads"

    def __init__(self, rank: int, meeting: Meeting) -> None:
        self.rank, self.size, self.timeout_s = rank, meeting.hub.size, meeting.hub.timeout_s
        self.device = torch.device("cpu")
        self.traffic = Traffic()
        self._meeting = meeting

    @property
    def ended(self) -> str:
        """Why it was aborted; empty while it lives."""
        return self._meeting.hub.ended

    def start(self, verb: str, *args: object) -> Work:
        """The verb of that name, begun."""
        calls.startable(verb)
        return cast("Begun", getattr(self, f"_{verb}")(*args))

    def subset(self, ranks: Sequence[int]) -> Comm:
        """A communicator of some ranks, in the order given; a rank that is no member gets one whose verbs raise."""
        chosen = checks.subset(self, ranks)
        begun = self._meet("subset", (chosen,), None, lambda _: Meeting(self._meeting.hub.child(chosen)))
        begun.wait()
        meeting = cast(Meeting, begun.result)
        return Threads(chosen.index(self.rank), meeting) if self.rank in chosen else Outside(self, chosen)

    def abort(self, reason: str) -> None:
        """End this communicator and its subsets."""
        self._meeting.hub.abort(reason)

    def _meet(self, verb: str, args: tuple[object, ...], value: object, act: Callable[[Any], object]) -> Begun:
        return self._meeting.rooms.meet(self.rank, calls.text(verb, *args), value, act)

    def _exchange(self, sends: Ends, receives: Ends) -> Begun:
        checks.exchange(self, sends, receives)
        with self._meeting.hub.lock:  # a rank may have several threads
            for x, peer in sends:
                if x.numel():  # processes send no others
                    self.traffic.counted.add(peer, x.nbytes)
        return self._meeting.links.exchange(self.rank, sends, receives)

    def _barrier(self) -> Begun:
        return self._meet("barrier", (), None, lambda _: None)

    def _all_reduce(self, x: Tensor, mean: bool = False) -> Begun:
        checks.all_reduce(self, x, mean)
        self._count("all_reduce", x.nbytes)
        return self._meet("all_reduce", (x, mean), x, partial(rank_order.all_reduce, mean=mean))

    def _reduce_scatter(self, out: Tensor, x: Tensor) -> Begun:
        checks.reduce_scatter(self, out, x)
        self._count("reduce_scatter", x.nbytes)
        return self._meet("reduce_scatter", (out, x), (out, x), rank_order.reduce_scatter)

    def _all_gather(self, out: Tensor, x: Tensor) -> Begun:
        checks.all_gather(self, out, x)
        self._count("all_gather", out.nbytes)
        return self._meet("all_gather", (out, x), (out, x), rank_order.all_gather)

    def _broadcast(self, x: Tensor, root: int) -> Begun:
        checks.broadcast(self, x, root)
        self._count("broadcast", x.nbytes, root)
        return self._meet("broadcast", (x, root), x, partial(rank_order.broadcast, root=root))

    def _all_to_all(
        self, out: Tensor, x: Tensor, out_counts: Sequence[int] | None = None, counts: Sequence[int] | None = None
    ) -> Begun:
        come, go = checks.all_to_all(self, out, x, out_counts, counts)
        row_nbytes = x.nbytes // max(1, sum(go))
        with self._meeting.hub.lock:
            laws.count_all_to_all(self.traffic, self.rank, [row_nbytes * n for n in go])
        return self._meet("all_to_all", (out, x), (out, x, come, go), rank_order.all_to_all)

    def _count(self, verb: str, nbytes: int, root: int = 0) -> None:
        with self._meeting.hub.lock:
            laws.count(self.traffic, verb, nbytes, self.size, self.rank, root)
