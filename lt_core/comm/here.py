"""This machine as a Cluster: its links measured by ping-pong between rank 0 and each other rank, its device's memory.

seconds one way
   |        . 4 MiB       the slope is the bandwidth: (bytes of the greatest - of the smallest) / the difference
   |   .                  the smallest message's time is the latency
   +------------ bytes
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median, quantiles

import torch
from torch import Tensor

from lt_core.base.cluster import Cluster, Device, Wire
from lt_core.comm import limits
from lt_core.comm.comm import Comm
from lt_core.comm.uncounted import uncounted

SIZES = (8, 2**16, 2**20, 2**22)  # bytes of a message
BUDGET_S = 0.5  # for all links and sizes together
LEAST, MOST = 3, 50  # round trips of a size


def here(comm: Comm) -> Cluster:
    """This machine as it is now: `comm.size` devices on one node, all joined by the wire `here`; the same on all ranks.

    Every rank calls it; it takes about half a second. A single rank has no link: its copies in memory are timed.
    """
    seconds = torch.zeros(len(SIZES), dtype=torch.float64, device=comm.device)
    with uncounted(comm):
        for index, nbytes in enumerate(SIZES):
            seconds[index] = _one_way_s(comm, nbytes, BUDGET_S / len(SIZES))
        comm.broadcast(seconds, 0)
    wire = fitted(seconds.tolist())
    return Cluster("here", _device(comm), comm.size, wire)


def fitted(seconds: list[float]) -> Wire:
    """The wire whose messages of `SIZES` take so long."""
    latency_s = seconds[0]
    more_s = max(seconds[-1] - latency_s, 1e-9)  # noise must not make a wire infinitely fast, or backward
    return Wire("here", latency_s, (SIZES[-1] - SIZES[0]) / more_s)


def _one_way_s(comm: Comm, nbytes: int, budget_s: float) -> float:
    """The median over rank 0's links of the seconds that a message takes; on other ranks 0."""
    x = torch.ones(nbytes, dtype=torch.uint8, device=comm.device)
    if comm.size == 1:
        copy = torch.empty_like(x)
        return _quiet_s(lambda: _seen(copy.copy_(x)), budget_s)
    found = []
    for peer in range(1, comm.size):
        if comm.rank == 0:
            found.append(_quiet_s(partial(_ping, comm, x, peer), budget_s / (comm.size - 1)) / 2)
            comm.exchange([(torch.zeros_like(x), peer)], [])
        elif comm.rank == peer:
            while _pong(comm, x):
                pass
    return median(found) if found else 0.0


def _quiet_s(call: Callable[[], object], budget_s: float) -> float:
    """The lower quartile: what else the machine does can only lengthen a round trip."""
    call()  # the first makes connections and buffers
    until_s, seconds = time.perf_counter() + budget_s, list[float]()
    while len(seconds) < LEAST or (len(seconds) < MOST and time.perf_counter() < until_s):
        begun_s = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begun_s)
    return quantiles(seconds, n=4, method="inclusive")[0]


def _ping(comm: Comm, x: Tensor, peer: int) -> None:
    comm.exchange([(x, peer)], [])
    comm.exchange([], [(x, peer)])
    _seen(x)


def _pong(comm: Comm, x: Tensor) -> bool:
    """Answer rank 0; whether another question will come."""
    comm.exchange([], [(x, 0)])
    if more := _seen(x):
        comm.exchange([(x, 0)], [])
    return more


def _seen(x: Tensor) -> bool:
    """The first byte; on a GPU it is there only when the message is."""
    return bool(x[0].item())


def _device(comm: Comm) -> Device:
    if comm.device.type == "cuda":
        card = torch.cuda.get_device_properties(comm.device)
        return Device(card.name, card.total_memory)
    return Device("CPU", limits.memory_bytes() // comm.size)  # the ranks share it
