"""One time for all ranks: rank 0 asks the others' clocks, one by one, and everybody learns how far each is off.

On one host all ranks read one clock, and the offsets are 0; between hosts they make the times of a merged trace
comparable.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch

from lt_core.base import clock
from lt_core.base.trace import Trace
from lt_core.comm.comm import Comm
from lt_core.comm.uncounted import uncounted

ROUNDS = 8  # questions to each clock; the quickest answer counts


def offsets(comm: Comm, read_s: Callable[[], float] = time.perf_counter) -> list[float]:
    """Seconds by which each rank's clock is ahead of rank 0's, by rank; the same list on every rank.

    Every rank calls it. The error is at most half of the quickest round trip; what is no more than that is 0.
    Source: Cristian 1989.
    """
    ahead = torch.zeros(comm.size, dtype=torch.float64, device=comm.device)
    with uncounted(comm):
        for peer in range(1, comm.size):
            if comm.rank == 0:
                ahead[peer] = _told_apart([_ask(comm, peer, read_s) for _ in range(ROUNDS)])
            elif comm.rank == peer:
                for _ in range(ROUNDS):
                    _answer(comm, read_s)
        comm.broadcast(ahead, 0)
    return [float(seconds) for seconds in ahead.tolist()]


def _ask(comm: Comm, peer: int, read_s: Callable[[], float]) -> clock.Probe:
    note = torch.zeros(1, dtype=torch.float64, device=comm.device)
    asked_s = read_s()
    comm.exchange([(note, peer)], [])
    comm.exchange([], [(note, peer)])
    there_s = note.item()
    return clock.Probe(asked_s, there_s, read_s())


def _told_apart(probes: list[clock.Probe]) -> float:
    ahead_s = clock.offset(probes)
    return ahead_s if abs(ahead_s) > clock.uncertainty_s(probes) else 0.0


def _answer(comm: Comm, read_s: Callable[[], float]) -> None:
    note = torch.zeros(1, dtype=torch.float64, device=comm.device)
    comm.exchange([], [(note, 0)])
    note.item()  # on a GPU: it has come
    comm.exchange([(note.fill_(read_s()), 0)], [])


def gather_traces(comm: Comm, trace: Trace) -> Trace | None:
    """On rank 0 one trace of all ranks, on rank 0's clock and beginning at 0; None elsewhere. Every rank calls it."""
    ahead = offsets(comm)
    data = torch.frombuffer(bytearray(trace.to_text().encode()), dtype=torch.uint8).to(comm.device)
    lengths = torch.zeros(comm.size, dtype=torch.int64, device=comm.device)
    with uncounted(comm):
        comm.all_gather(lengths, torch.tensor([data.numel()], device=comm.device))
        if comm.rank:
            comm.exchange([(data, 0)], [])
            return None
        sizes = lengths.tolist()[1:]
        buffers = [torch.empty(size, dtype=torch.uint8, device=comm.device) for size in sizes]
        comm.exchange([], [(buffer, peer) for peer, buffer in enumerate(buffers, 1)])
    texts = [bytes(buffer.cpu().numpy()).decode() for buffer in buffers]
    traces = [trace, *(Trace.of_text(text, f"rank {peer}'s trace") for peer, text in enumerate(texts, 1))]
    return Trace.merge(traces, ahead)
