"""Right answers to lab 32, in shapes that differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from lt_core.base.cluster import Wire
from lt_core.comm.comm import Comm
from lt_core.teaching.checks.compress_pick import CHOICE

Tensors = dict[str, Tensor]
Send = Callable[[Tensors], Tensors]


def feedback(memory: Tensors, grads: Tensors, send: Send) -> Tensors:
    """Zeros at first, in 32 bits or more."""
    x = {name: g + memory.get(name, torch.zeros(g.shape)) for name, g in grads.items()}
    sent = send(x)
    memory.update({name: x[name] - sent[name] for name in x})
    return sent


def in_a_loop(memory: dict[Any, Any], grads: Tensors, send: Send) -> Tensors:
    """In double precision, under a key of its own."""
    held = memory.setdefault("waiting", {})
    for name, g in grads.items():
        held[name] = held.get(name, 0.0) + g.double()
    sent = send(held if set(held) == set(grads) else {name: held[name] for name in grads})
    for name in grads:
        held[name] = held[name] - sent[name]
    return sent


def sends_like_the_gradient(memory: Tensors, grads: Tensors, send: Send) -> Tensors:
    """In the gradient's own bits on the wire; what the rounding left waits as well."""
    x = {name: g + memory.get(name, torch.zeros(g.shape)) for name, g in grads.items()}
    sent = send({name: t.to(grads[name].dtype) for name, t in x.items()})
    memory.update({name: x[name] - sent[name] for name in x})
    return sent


def top_k_mean(comm: Comm, x: Tensor, k: int) -> Tensor:
    """Indices and values as two messages to each rank."""
    where = x.abs().topk(k).indices
    pairs = (where, x[where])
    others = [r for r in range(comm.size) if r != comm.rank]
    came = {r: tuple(torch.empty_like(one) for one in pairs) for r in others}
    comm.exchange([(one, r) for r in others for one in pairs], [(one, r) for r in others for one in came[r]])
    total = torch.zeros_like(x)
    for r in range(comm.size):
        total.index_add_(0, *came.get(r, pairs))
    return total / comm.size


def round_the_ring(comm: Comm, x: Tensor, k: int) -> Tensor:
    """One message of both, passed on p - 1 times."""
    where = x.abs().sort(descending=True).indices[:k]
    parcel = torch.stack([where.double(), x[where]])
    total = torch.zeros_like(x).index_add(0, where, x[where])
    for _ in range(comm.size - 1):
        came = torch.empty_like(parcel)
        comm.exchange([(parcel, (comm.rank + 1) % comm.size)], [(came, (comm.rank - 1) % comm.size)])
        total.index_add_(0, came[0].long(), came[1])
        parcel = came
    return total / comm.size


def low_rank_mean(comm: Comm, m: Tensor, rank: int, memory: Tensors) -> Tensor:
    """Two products, two sums."""
    q = memory.get("q", first(m, rank, 0))
    p = m @ q
    comm.all_reduce(p)
    p = orthonormal(p)
    q = m.T @ p
    comm.all_reduce(q)
    memory["q"] = q / comm.size
    mean: Tensor = p @ memory["q"].T
    return mean


def orthonormal(p: Tensor) -> Tensor:
    """Columns that span those of p."""
    columns: Tensor = torch.linalg.qr(p).Q
    return columns


def first(m: Tensor, rank: int, seed: int) -> Tensor:
    """A random q, the same wherever the seed is."""
    return torch.randn(m.shape[1], rank, generator=torch.Generator().manual_seed(seed)).to(m)


def by_hand_and_row(comm: Comm, m: Tensor, rank: int, memory: dict[Any, list[Tensor]]) -> Tensor:
    """Column by column, as Gram and Schmidt do; the last factors under a key of its own."""
    line = torch.linspace(-1, 1, m.shape[1]).to(m)
    start = memory.get(0) or [line**k for k in range(rank)]
    left = torch.stack([m @ q for q in start])
    comm.all_reduce(left)
    for k in range(rank):
        for done in left[:k]:
            left[k] -= (done @ left[k]) * done
        left[k] /= left[k].norm() + 1e-30
    right = left @ m / comm.size
    comm.all_reduce(right)
    memory[0] = list(right)
    return left.T @ right


def pick(p: int, wire: Wire, seconds: Mapping[str, float]) -> str:
    """The laws, compared."""
    return str(CHOICE.of((p, wire, seconds)))


def by_hand(p: int, wire: Wire, seconds: Mapping[str, float]) -> str:
    """The laws, written out."""
    ring = 2 * (p - 1) / p * 4 / wire.bytes_per_s
    times = {
        "dense": 2 * (p - 1) * wire.latency_s + ring * 420_480,
        "top-k": (p - 1) * (wire.latency_s + 4_205 * 8 / wire.bytes_per_s),
        "PowerSGD": 4 * (p - 1) * wire.latency_s + ring * 24_064,
    }
    return min(times, key=lambda name: times[name] + seconds[name])


RIGHT: dict[str, tuple[Callable[..., Any], ...]] = {
    "32.feedback": (feedback, in_a_loop, sends_like_the_gradient),
    "32.top_k": (top_k_mean, round_the_ring),
    "32.power_sgd": (low_rank_mean, by_hand_and_row),
    "32.pick": (pick, by_hand),
}
