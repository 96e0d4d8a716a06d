"""Bucketed data parallelism: gradients travel together, so that a step pays a few latencies instead of hundreds.

    compute  |forward|backward          |            |step|
    wire                                | w4w3 | w2w1 |

Law: b buckets of m_k elements (see `buckets`), over any all-reduce (the ring's, here).
    bytes     sum over buckets of 2 m_k w (p - 1) / p        as many as naive's, but for the rounding of chunks
    messages  b times those of one all-reduce
    seconds   forward + backward + sum of all messages

Paper: Li and others 2020, "PyTorch Distributed", section 3.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from lt_core.base.trace import Trace
from lt_core.collectives.reducer import Reducer
from lt_core.comm.comm import Comm
from lt_core.data_parallel.replicate import naive
from lt_core.data_parallel.replicate.buckets import BUCKET_BYTES, bucket_elements, in_backward_order
from lt_core.data_parallel.replicate.replica import Replica
from lt_core.data_parallel.replicate.roll import call_roll


def replicate(
    model: nn.Module,
    comm: Comm,
    reducer: Reducer | None = None,
    bucket_bytes: int = BUCKET_BYTES,
    trace: Trace | None = None,
) -> Bucketed:
    """The replica of a model that all ranks train together; its `sync()` belongs between backward and step.

    bucket_bytes: how much travels at once. Else arguments and errors are those of `naive.replicate`.
    """
    return Bucketed(model, comm, reducer, bucket_bytes, trace)


class Bucketed(Replica):
    """One bucket after the other, when the backward is over."""

    def __init__(
        self, model: nn.Module, comm: Comm, reducer: Reducer | None, bucket_bytes: int, trace: Trace | None
    ) -> None:
        in_backward_order({}, bucket_bytes)  # refused before anything is sent
        super().__init__(model, comm, reducer, trace)
        self.bucket_bytes = bucket_bytes

    def means(self, samples: float | None) -> None:
        """Make every `.grad` the mean of all ranks'."""
        roll = call_roll(self.comm, self.parameters, samples)
        used = {name: self.parameters[name] for name in roll.dense}
        with self.or_dropped():
            self.means_of(roll, in_backward_order(used, self.bucket_bytes))


def law_messages(size: int, elements: Sequence[int], itemsize: int, rank: int, bucket_bytes: int = BUCKET_BYTES) -> int:
    """How many messages `rank` sends in a step over rings. elements: of each parameter that was used, one dtype."""
    return naive.law_messages(size, bucket_elements(elements, itemsize, bucket_bytes), rank)


def law_bytes(size: int, elements: Sequence[int], itemsize: int, rank: int, bucket_bytes: int = BUCKET_BYTES) -> int:
    """How many bytes `rank` sends in a step over rings, beside the roll."""
    return naive.law_bytes(size, bucket_elements(elements, itemsize, bucket_bytes), itemsize, rank)


def law_seconds(forward_s: float, backward_s: Sequence[float], wire_s: Sequence[float]) -> float:
    """How long a step takes. backward_s, wire_s: of each bucket, in the order of the backward."""
    return forward_s + sum(backward_s) + sum(wire_s)
