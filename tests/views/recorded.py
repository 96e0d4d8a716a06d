"""Collectives that ran for real on threads, with their chunk tables."""

import torch

from lt_core import launch
from lt_core.base import Trace
from lt_core.collectives import all_reduce, chunk_table, of_rounds
from lt_core.collectives.rounds import ADD, COPY, Message


def record(comm, schedule, elements, dtype):
    trace = Trace(schedule.name, backend=comm.backend)
    x = torch.arange(1, elements + 1, dtype=dtype) * 10**comm.rank
    all_reduce(comm, x, schedule, trace, watch=chunk_table)
    return trace


def recorded(schedule, elements=None, dtype=torch.int64):
    """A real run on threads: rank r brings 1 2 3 ... times 10**r."""
    return Trace.merge(
        launch(record, schedule.size, schedule, elements or schedule.size, dtype, backend="threads", timeout_s=20)
    )


def star(size):
    """Each rank sums one chunk: all others send it theirs in one round."""
    pairs = [(r, q) for r in range(size) for q in range(size) if r != q]
    return of_rounds(
        "star", size, [[Message(r, q, q, ADD) for r, q in pairs], [Message(q, r, q, COPY) for r, q in pairs]]
    )
