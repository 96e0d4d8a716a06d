"""Hogwild: all ranks read and write one set of weights in shared memory, and nobody locks anything.

rank 0   read w ... g ... w[3] -= rate g[3] ... w[7] -= ...          a write of w[3] is: load, subtract, store
rank 1       read w ... g ... w[3] -= rate g[3] ...                  two at one moment: one of them is lost

Where gradients are sparse and touch different weights nothing is lost, whatever the order; where they are dense some
updates are. That is the bargain. A run without locks has no order to replay. Niu and others 2011.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import torch
from torch import Tensor, nn

from lt_core.base.errors import UserError
from lt_core.base.trace import Mark, Trace
from lt_core.collectives.agreement import agree
from lt_core.comm.comm import Comm
from lt_core.data_parallel.finite import finite
from lt_core.data_parallel.parameter_server.layout import Layout
from lt_core.data_parallel.staleness import KIND

Loss = Callable[[nn.Module, int, int], Tensor]  # loss(model, rank, step)
NAME_BYTES = 4096  # longer than any path


class Ended(NamedTuple):
    """All ranks' weights (elements,) as they stand when the last has stopped, and this rank's trace."""

    weights: Tensor
    trace: Trace


def train(comm: Comm, model: nn.Module, loss: Loss, rate: float, steps: int) -> Ended:
    """`steps` steps of this rank on the weights of all; the model's parameters lie in shared memory from then on.

    Weights start as rank 0's. Sparse gradients touch their own rows only. The trace marks, for each step, how many
    updates of all ranks had been made before it read and when it had written. Errors: ranks of several hosts or
    devices, which share no memory; no room for it; ranks with different models; a rate or a number of steps that is
    none; a gradient with an inf or a nan.
    """
    if not 0 < rate < float("inf") or steps < 0:
        raise UserError("Hogwild makes steps along the gradient", f"{steps} of {rate}", "0 or more, a rate above 0")
    layout = Layout(model)
    agree(comm, "parameters", layout.lines(), "build the model in the same way on every rank")
    if layout.device.type != "cpu":
        raise UserError("Hogwild needs memory that all ranks share", f"a model on {layout.device}", "one on the CPU")
    whole, counts = shared(comm, layout)
    if comm.rank == 0:
        whole.copy_(layout.flat(layout.parameters))
    for (low, high), p in zip(layout.places, layout.parameters.values()):
        p.data = whole[low:high].view(p.shape)
    comm.barrier()
    trace = Trace("Hogwild", backend=comm.backend)
    for step in range(steps):
        read = int(counts.sum())
        model.zero_grad(set_to_none=True)
        loss(model, comm.rank, step).backward()  # type: ignore[no-untyped-call]
        finite((p.grad for p in layout.parameters.values()), comm.rank, step)
        for p in layout.parameters.values():
            _write(p, rate)
        counts[comm.rank] += 1  # each rank has a count of its own, so that none of these is lost
        made = int(counts.sum())
        value = {"clock": step, "server": 0, "read": read, "version": made, "written": made}
        trace.marks.append(Mark(comm.rank, perf_counter(), KIND, {**value}))
    comm.barrier()
    return Ended(whole.clone(), trace)


def shared(comm: Comm, layout: Layout) -> tuple[Tensor, Tensor]:
    """Memory that all ranks of this host map: the weights (elements,), and a count of updates by rank (size,)."""
    elements, at = layout.elements, -(-layout.elements * layout.dtype.itemsize // 64) * 64
    path, name, nbytes = "", torch.zeros(NAME_BYTES, dtype=torch.uint8, device=comm.device), at + 8 * comm.size
    if comm.rank == 0:
        path = _made(nbytes)
        name[: len(path.encode())] = torch.tensor(list(path.encode()), dtype=torch.uint8, device=comm.device)
    try:
        comm.broadcast(name, 0)
        path = bytes(name.tolist()).rstrip(b"\0").decode()
        if not os.path.exists(path):
            raise UserError("the ranks share no memory", f"rank {comm.rank} does not see {path}", "ranks of one host")
        memory = torch.from_file(path, shared=True, size=nbytes, dtype=torch.uint8)
        comm.barrier()  # now all have it, and the name can go
    finally:
        if comm.rank == 0:
            os.unlink(path)
    weights = memory[: elements * layout.dtype.itemsize].view(layout.dtype)
    return weights, memory[at:].view(torch.int64)


def _made(nbytes: int) -> str:
    """The path of a new file of so many zeros; no hole: a full disk would end a rank when it writes a weight there."""
    handle, path = tempfile.mkstemp(prefix="ltlab-hogwild-")
    try:
        with open(handle, "wb") as file:
            file.write(bytes(nbytes))
    except OSError as error:
        os.unlink(path)
        raise UserError(
            "no room for weights that all ranks share", error.strerror, f"{nbytes} bytes in {path}"
        ) from error
    return path


def lost(weights: Tensor, start: float, rate: float, steps: int) -> int:
    """How many writes of single weights were lost, if each of `steps` updates should have taken `rate` from all of
    `weights` (n,), which were `start`: of a loss that is their sum, whose gradient is one everywhere."""
    made = ((start - weights) / rate).round()
    return int((steps - made).sum())


def _write(p: nn.Parameter, rate: float) -> None:
    """w -= rate g in place, weight by weight, and only where g has something."""
    if p.grad is None:
        return
    with torch.no_grad():
        if p.grad.is_sparse:
            g = p.grad.coalesce()
            p.data.index_add_(0, g.indices()[0], g.values(), alpha=-rate)
        else:
            p.data.add_(p.grad, alpha=-rate)
