"""A ring all-reduce on real ranks, and what its three witnesses say: the formula, the simulation, the run.

Values differ by rank and position and are whole numbers, so that the sum is exact: element i of rank r is i + 2**30 r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

import torch

from lt_core.base.cluster import Cluster
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Trace
from lt_core.base.traffic import Traffic
from lt_core.base.units import bounds
from lt_core.collectives import all_reduce, ring
from lt_core.comm.clocks import gather_traces
from lt_core.comm.comm import Comm
from lt_core.comm.here import here
from lt_core.engine.costs import of_cluster
from lt_core.engine.simulate import simulate

DTYPE = torch.float64
APART = 2**30  # between the values of two ranks


class Seen(NamedTuple):
    """What one rank saw: whether its sum is right, a digest of its bits, what it sent, and on what machine. Rank 0 also
    has the trace of all."""

    right: bool
    digest: str
    traffic: Traffic
    machine: Cluster
    trace: Trace | None


class Quantity(NamedTuple):
    """One thing that the three witnesses speak of: what each says, by rank."""

    name: str
    law: list[int]
    simulated: list[int]
    measured: list[int]

    def agree(self) -> bool:
        """Whether they say the same of every rank, to the digit."""
        return self.law == self.simulated == self.measured


@dataclass(frozen=True)
class Trial:
    """A run on ranks of which each left what it saw."""

    elements: int
    seen: Sequence[Seen]

    @property
    def size(self) -> int:
        """How many ranks ran."""
        return len(self.seen)

    @property
    def nbytes(self) -> int:
        """Bytes of the tensor."""
        return self.elements * DTYPE.itemsize

    @property
    def machine(self) -> Cluster:
        """The ranks and their wire, as rank 0 measured them."""
        return self.seen[0].machine

    @cached_property
    def schedule(self) -> Schedule:
        """Who sent what to whom."""
        return ring.schedule(self.size)

    @property
    def measured(self) -> Trace:
        """The run of all ranks, on rank 0's clock."""
        assert self.seen[0].trace
        return self.seen[0].trace

    @cached_property
    def simulated(self) -> Trace:
        """The same schedule on the wire that was measured."""
        cuts = [bounds(self.elements, unit, self.size) for unit in range(self.size)]
        chunk_bytes = [(high - low) * DTYPE.itemsize for low, high in cuts]
        return simulate(self.schedule, of_cluster(self.machine, chunk_bytes))

    def right(self) -> bool:
        """Whether every rank holds the sum."""
        return all(one.right for one in self.seen)

    def same_bits(self) -> bool:
        """Whether all ranks hold the same bits."""
        return len({one.digest for one in self.seen}) == 1

    def quantities(self) -> list[Quantity]:
        """Bytes, messages and rounds, each by law, by simulation, and as counted at the ranks' doors."""
        each, counted = range(self.size), [one.traffic.counted for one in self.seen]
        sent = [[s.nbytes for s in self.simulated.spans if (s.rank, s.stream) == (r, "out")] for r in each]
        return [
            Quantity(
                "bytes",
                [ring.law_bytes(self.size, self.elements, DTYPE.itemsize, r) for r in each],
                [sum(one) for one in sent],
                [one.bytes for one in counted],
            ),
            Quantity(
                "messages",
                [ring.law_messages(self.size, self.elements, r) for r in each],
                [sum(nbytes > 0 for nbytes in one) for one in sent],
                [one.messages for one in counted],
            ),
            Quantity(
                "rounds",
                [ring.law_rounds(self.size)] * self.size,
                [_rounds(self.simulated, r) for r in each],
                [_rounds(self.measured, r) for r in each],
            ),
        ]

    def law_s(self) -> float:
        """Seconds that the formula gives for the wire that was measured."""
        return ring.law_seconds(self.size, self.nbytes, self.machine.inner)


def _rounds(trace: Trace, rank: int) -> int:
    return len({s.action.batch for s in trace.spans if s.rank == rank and s.action})


def on_each(comm: Comm, elements: int) -> Seen:
    """One rank's part: sum `elements` numbers by the ring, and keep what can be seen of it."""
    machine, schedule = here(comm), ring.schedule(comm.size)
    x = torch.arange(elements, dtype=DTYPE, device=comm.device) + APART * comm.rank
    all_reduce(comm, x, schedule)  # the first one opens connections, which is not the ring's to pay
    trace = Trace("ring", backend=comm.backend)
    comm.barrier()
    before = comm.traffic.copy()
    total = all_reduce(comm, x, schedule, trace)
    sent = comm.traffic - before
    digest = sha256(total.cpu().numpy().tobytes()).hexdigest()
    return Seen(_is_sum(total, comm.size), digest, sent, machine, gather_traces(comm, trace))


def _is_sum(total: torch.Tensor, size: int) -> bool:
    apart = APART * (size * (size - 1) // 2)
    return torch.equal(total, size * torch.arange(total.numel(), dtype=DTYPE, device=total.device) + apart)
