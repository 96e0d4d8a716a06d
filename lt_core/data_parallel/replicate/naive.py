"""Naive data parallelism: after the backward, one message a parameter. It teaches, and it is the oracle of the others.

    compute  |forward|backward          |                   |step|
    wire                                | w4 | w3 | w2 | w1 |           every message pays its latency; while one works
                                                                        the other waits
Law: n messages where `bucketed` sends as many as there are buckets, over any all-reduce (the ring's, here).
    bytes     sum over parameters of 2 n_i w (p - 1) / p     sent by each rank
    seconds   forward + backward + sum of all messages
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from lt_core.base.trace import Trace
from lt_core.collectives import ring
from lt_core.collectives.reducer import Reducer
from lt_core.comm.comm import Comm
from lt_core.data_parallel.replicate.replica import Replica
from lt_core.data_parallel.replicate.roll import call_roll


def replicate(model: nn.Module, comm: Comm, reducer: Reducer | None = None, trace: Trace | None = None) -> Naive:
    """The replica of a model that all ranks train together; its `sync()` belongs between backward and step.

    model: any module on the communicator's device; it becomes rank 0's, and is neither wrapped nor rewritten.
    reducer: what makes a mean of gradients, the exact one unless given; it gets one parameter at a time.
    trace: where forwards, backwards and messages are written down.
    Errors: ranks with different parameters; those without a shape yet, or elsewhere; see `Replica.sync`.
    """
    return Naive(model, comm, reducer, trace)


class Naive(Replica):
    """One parameter after the other."""

    def means(self, samples: float | None) -> None:
        """Make every `.grad` the mean of all ranks'."""
        roll = call_roll(self.comm, self.parameters, samples)
        with self.or_dropped():
            self.means_of(roll, ([name] for name in roll.dense))


def law_messages(size: int, elements: Sequence[int], rank: int) -> int:
    """How many messages `rank` sends in a step over rings. elements: of each parameter that was used."""
    return sum(ring.law_messages(size, n, rank) for n in elements)


def law_bytes(size: int, elements: Sequence[int], itemsize: int, rank: int) -> int:
    """How many bytes `rank` sends in a step over rings, beside the roll."""
    return sum(ring.law_bytes(size, n, itemsize, rank) for n in elements)


def law_seconds(forward_s: float, backward_s: Sequence[float], wire_s: Sequence[float]) -> float:
    """How long a step takes. backward_s, wire_s: of each bucket, in the order of the backward."""
    return forward_s + sum(backward_s) + sum(wire_s)
