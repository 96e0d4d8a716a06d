"""The backend's own all-reduce behind the same face: what every algorithm here is measured against.

gloo and NCCL choose and run it themselves, so there is no schedule to read and nothing to count at our door: its bytes
stand in `traffic.by_law`, and a trace shows one bar.
"""

from __future__ import annotations

from time import perf_counter

from torch import Tensor

from lt_core.base.trace import Span, Trace
from lt_core.collectives.buffers import copied
from lt_core.comm.comm import Comm


def all_reduce(comm: Comm, x: Tensor, trace: Trace | None = None) -> Tensor:
    """The sum of all ranks' x (any shape, dense or strided), on every rank; x is left as it was."""
    flat = copied(x)
    run(comm, flat, trace)
    return flat.view(x.shape)


def run(comm: Comm, flat: Tensor, trace: Trace | None = None) -> None:
    """The same in place. flat: (n,), dense."""
    before, start_s = comm.traffic.bytes, perf_counter()
    comm.all_reduce(flat)
    if trace is not None:
        sent = comm.traffic.bytes - before
        trace.spans.append(Span(comm.rank, "out", "all_reduce", start_s, perf_counter(), sent))
