"""The verbs over shaped wires: each begins its like beneath, and what it began is over when the law says so.

A message is followed by a stamp that tells its receiver when it left, a collective led by one of every rank. The
caller of `start` never waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lt_core.base.cluster import Wire
from lt_core.base.work import Work
from lt_core.comm import buffers, calls, checks, laws
from lt_core.comm.clocks import offsets
from lt_core.comm.comm import Comm, Ends
from lt_core.comm.shaped.ports import Coming, Ports, Time
from lt_core.comm.shaped.shape import Shape
from lt_core.comm.shaped.travelling import Travelling
from lt_core.comm.verbs import Verbs


def shaped(
    comm: Comm,
    wire: Wire,
    *,
    links: Mapping[tuple[int, int], Wire] | None = None,
    jitter_s: float = 0.0,
    straggler: Mapping[int, float] | None = None,
    seed: int = 0,
) -> Comm:
    """The same group over wires like `wire`; every rank calls it, with equal arguments.

    `links`: other wires for some (sender, receiver); `jitter_s`: each message takes up to so much longer, drawn from
    `seed`; `straggler`: a rank's messages take so many times as long. The backend's own collectives take the ring's
    law, from the moment the last rank came; a barrier takes nothing.
    """
    shape = Shape(wire, dict(links or {}), jitter_s, dict(straggler or {}), seed)
    shape.check(comm.size)
    return Shaped(comm, Ports(shape), range(comm.size), offsets(comm))


class Shaped(Verbs):
    """A communicator around `inner`; `ranks`: what its ranks are called in the shape; `ahead_s`: their clocks."""

    def __init__(self, inner: Comm, ports: Ports, ranks: Sequence[int], ahead_s: Sequence[float]) -> None:
        self.rank, self.size, self.device, self.backend = inner.rank, inner.size, inner.device, inner.backend
        self.traffic, self.timeout_s = inner.traffic, inner.timeout_s
        self._inner, self._ports, self._ranks = inner, ports, list(ranks)
        self._ahead_s = [seconds - ahead_s[inner.rank] for seconds in ahead_s]  # of ours
        self._stopped = threading.Event()
        self._subsets: list[Shaped] = []

    @property
    def ended(self) -> str:
        """Why it was aborted; empty while it lives."""
        return self._inner.ended

    def start(self, verb: str, *args: Any) -> Work:
        """The verb of that name, begun; its time passes in `wait()`."""
        if verb == "exchange":
            return self._messages(*args)
        if verb in calls.VERBS and verb != "barrier":
            return self._collective(verb, *args)
        return self._inner.start(verb, *args)

    def subset(self, ranks: Sequence[int]) -> Comm:
        """A communicator of some ranks over the same wires and ports."""
        inner = self._inner.subset(ranks)
        if inner.rank < 0:
            return inner
        ahead_s = [self._ahead_s[r] for r in ranks]
        self._subsets.append(Shaped(inner, self._ports, [self._ranks[r] for r in ranks], ahead_s))
        return self._subsets[-1]

    def allocate(self, elements: int, dtype: torch.dtype) -> Tensor:
        """As `buffers.allocate`: where the communicator beneath works in place."""
        return buffers.allocate(self._inner, elements, dtype)

    def free(self, x: Tensor) -> None:
        """Give it back."""
        buffers.free(self._inner, x)

    def abort(self, reason: str) -> None:
        """End this communicator and its subsets."""
        self._inner.abort(reason)
        self._stop()

    def _stop(self) -> None:
        self._stopped.set()
        for subset in self._subsets:
            subset._stop()

    def _messages(self, sends: Ends, receives: Ends) -> Work:
        checks.exchange(self, sends, receives)
        begun_s, ports = time.perf_counter(), self._ports
        stamps = [torch.empty(1, dtype=torch.float64, device=self.device) for _ in receives]
        with ports.lock:
            left = [ports.leave(begun_s, self._seconds(self.rank, peer, x.nbytes)) for x, peer in sends]
            take_s = [self._seconds(peer, self.rank, x.nbytes) for x, peer in receives]
            work = self._inner.start(
                "exchange",
                _each_followed(sends, [self._stamp(span.start_s) for span in left]),
                _each_followed(receives, stamps),
            )
            for _, peer in sends:
                self.traffic.counted.add(peer, -8, -1)  # a stamp is ours, not the user's
        coming = [(stamp, peer, seconds) for stamp, (_, peer), seconds in zip(stamps, receives, take_s)]

        def law() -> Time:
            landed = ports.land(begun_s, [Coming(self._here_s(stamp, peer), peer, s) for stamp, peer, s in coming])
            spans = [*left, *landed] or [Time(begun_s, begun_s)]
            return Time(min(s.start_s for s in spans), max(s.end_s for s in spans))

        return self._travelling(calls.exchange([p for _, p in sends], [p for _, p in receives]), [work], law)

    def _collective(self, verb: str, *args: Any) -> Work:
        getattr(checks, verb)(self, *args)
        begun = self._stamp(time.perf_counter())
        stamps = begun.new_empty(self.size)
        with self._ports.lock:
            seconds = self._collective_seconds(verb, args)
            works = [self._inner.start("all_gather", stamps, begun)]
            laws.count(self.traffic, "all_gather", stamps.nbytes, self.size, self.rank, times=-1)
            works.append(self._inner.start(verb, *args))

        def law() -> Time:
            return self._ports.meet(max(self._here_s(stamp, r) for r, stamp in enumerate(stamps)), seconds)

        return self._travelling(calls.text(verb, *args), works, law)

    def _collective_seconds(self, verb: str, args: Sequence[Any]) -> float:
        if verb != "all_to_all":
            whole = args[1] if verb == "reduce_scatter" else args[0]
            return self._ports.collective_seconds(verb, whole.nbytes, self._ranks)
        come, go = checks.all_to_all(self, *args)
        row_nbytes = (args[0].nbytes + args[1].nbytes) // max(1, sum(come) + sum(go))
        others = [r for r in range(self.size) if r != self.rank]
        sent_s = sum(self._seconds(self.rank, r, row_nbytes * go[r]) for r in others)
        return max(sent_s, sum(self._seconds(r, self.rank, row_nbytes * come[r]) for r in others))

    def _seconds(self, sender: int, receiver: int, nbytes: int) -> float:
        return self._ports.seconds(self._ranks[sender], self._ranks[receiver], nbytes)

    def _stamp(self, at_s: float) -> Tensor:
        return torch.full((1,), at_s, dtype=torch.float64, device=self.device)

    def _here_s(self, stamp: Tensor, rank: int) -> float:
        """A rank's stamp on our own clock."""
        return stamp.item() - self._ahead_s[rank]

    def _travelling(self, words: str, works: Sequence[Work], law: Callable[[], Time]) -> Travelling:
        return Travelling(self, words, works, law, self._stopped)


def _each_followed(messages: Ends, stamps: Sequence[Tensor]) -> Ends:
    """Each message, and after it its stamp on the same link."""
    return [end for (x, peer), stamp in zip(messages, stamps) for end in ((x, peer), (stamp, peer))]
