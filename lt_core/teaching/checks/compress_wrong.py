"""Wrong answers to lab 32, each with the thought behind it and the property that refuses it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lt_core.comm.comm import Comm
from lt_core.teaching.checks import compress_wrong_low_rank
from lt_core.teaching.checks import compress_wrong_pick as choices
from lt_core.teaching.checks.compress_answers import Send, Tensors, feedback, top_k_mean
from lt_core.teaching.checks.exercise import Answer


def nothing_back(memory: Tensors, grads: Tensors, send: Send) -> None:
    """It is sent, so it is done."""
    feedback(memory, grads, send)


def sends_twice(memory: Tensors, grads: Tensors, send: Send) -> Tensors:
    """Asks again what was sent."""
    x = {name: g + memory.get(name, torch.zeros(g.shape)) for name, g in grads.items()}
    memory.update({name: x[name] - send(x)[name] for name in x})
    return send(x)


def never_read(memory: Tensors, grads: Tensors, send: Send) -> Tensors:
    """Keeps a memory and does not use it."""
    sent = send(grads)
    memory.update({name: memory.get(name, torch.zeros(g.shape)) + g - sent[name] for name, g in grads.items()})
    return sent


def forgets_the_old(memory: Tensors, grads: Tensors, send: Send) -> Tensors:
    """e = grad - sent."""
    sent = send({name: g + memory.get(name, torch.zeros(g.shape)) for name, g in grads.items()})
    memory.update({name: g - sent[name] for name, g in grads.items()})
    return sent


def in_halves(memory: Tensors, grads: Tensors, send: Send) -> Tensors:
    """The memory has the gradient's dtype."""
    x = {name: g + memory.get(name, torch.zeros_like(g)) for name, g in grads.items()}
    sent = send(x)
    memory.update({name: x[name] - sent[name] for name in x})
    return sent


def by_shape(memory: dict[Any, Tensor], grads: Tensors, send: Send) -> Tensors:
    """One memory a shape."""
    x = {name: g + memory.get(g.shape, torch.zeros(g.shape)) for name, g in grads.items()}
    sent = send(x)
    memory.update({x[name].shape: x[name] - sent[name] for name in x})
    return sent


def starts_anew(memory: Tensors, grads: Tensors, send: Send) -> Tensors:
    """What is not there today is not needed."""
    sent = feedback(memory, grads, send)
    for name in set(memory) - set(grads):
        del memory[name]
    return sent


def into_the_gradient(memory: Tensors, grads: Tensors, send: Send) -> Tensors:
    """Adds what waits into the gradient."""
    for name, g in grads.items():
        g += memory.get(name, torch.zeros(g.shape))
    sent = send(grads)
    memory.update({name: g - sent[name] for name, g in grads.items()})
    return sent


def told(comm: Comm, x: Tensor, where: Tensor) -> list[tuple[Tensor, Tensor]]:
    """Everyone's pairs, by rank."""
    pairs = (where, x[where])
    others = [r for r in range(comm.size) if r != comm.rank]
    came = {r: (torch.empty_like(where), torch.empty_like(pairs[1])) for r in others}
    comm.exchange([(one, r) for r in others for one in pairs], [(one, r) for r in others for one in came[r]])
    return [came.get(r, pairs) for r in range(comm.size)]


def overwrites(comm: Comm, x: Tensor, k: int) -> Tensor:
    """Writes each value to its index."""
    total = torch.zeros_like(x)
    for where, values in told(comm, x, x.abs().topk(k).indices):
        total[where] = values
    return total / comm.size


def by_who_sent(comm: Comm, x: Tensor, k: int) -> Tensor:
    """The mean of those who sent it."""
    total, count = torch.zeros_like(x), torch.zeros_like(x)
    for where, values in told(comm, x, x.abs().topk(k).indices):
        total.index_add_(0, where, values)
        count.index_add_(0, where, torch.ones_like(values))
    return total / count.clamp(min=1)


def above_the_kth(comm: Comm, x: Tensor, k: int) -> Tensor:
    """All that are as large as the k-th: as many on every rank, as long as no two are alike."""
    where = (x.abs() >= x.abs().topk(k).values[-1]).nonzero().view(-1)
    total = torch.zeros_like(x)
    for theirs, values in told(comm, x, where):
        total.index_add_(0, theirs, values)
    return total / comm.size


def the_greatest(comm: Comm, x: Tensor, k: int) -> Tensor:
    """The largest, without their sign."""
    total = torch.zeros_like(x)
    for where, values in told(comm, x, x.topk(k).indices):
        total.index_add_(0, where, values)
    return total / comm.size


def densely(comm: Comm, x: Tensor, k: int) -> Tensor:
    """Zeros travel, too."""
    kept, others = torch.zeros_like(x), [r for r in range(comm.size) if r != comm.rank]
    where = x.abs().topk(k).indices
    kept[where] = x[where]
    came = {r: torch.empty_like(x) for r in others}
    comm.exchange([(kept, r) for r in others], [(came[r], r) for r in others])
    return torch.stack([came.get(r, kept) for r in range(comm.size)]).sum(0) / comm.size


def by_the_back_end(comm: Comm, x: Tensor, k: int) -> Tensor:
    """The back end can add up."""
    kept, where = torch.zeros_like(x), x.abs().topk(k).indices
    kept[where] = x[where]
    comm.all_reduce(kept)
    return kept / comm.size


def clears(comm: Comm, x: Tensor, k: int) -> Tensor:
    """What is sent is taken out of x."""
    mean = top_k_mean(comm, x, k)
    x[x.abs().topk(k).indices] = 0
    return mean


def at_least_two(comm: Comm, x: Tensor, k: int) -> Tensor:
    """Somebody else is always there."""
    mean = top_k_mean(comm, x, k)
    return mean if comm.size > 1 else mean / 2


def pairs_back(comm: Comm, x: Tensor, k: int) -> Any:
    """The pairs, as they came."""
    return told(comm, x, x.abs().topk(k).indices)


BOARD: dict[int, Tensor] = {}  # what threads of one process see of each other, and processes do not


def over_a_shared_board(comm: Comm, x: Tensor, k: int) -> Tensor:
    """A variable of one rank is there on the others, on threads."""
    kept, where = torch.zeros_like(x), x.abs().topk(k).indices
    kept[where] = x[where]
    BOARD[comm.rank] = kept
    top_k_mean(comm, x, k)
    return torch.stack([BOARD[r] for r in range(comm.size)]).sum(0) / comm.size


WRONG: dict[str, tuple[Answer, ...]] = {
    "32.feedback": (
        Answer("W1", "e = grad - sent", forgets_the_old, "nothing is lost", alone=True),
        Answer("W2", "keeps a memory and never reads it", never_read, "what waits is added", alone=True),
        Answer("W3", "the memory has 16 bits", in_halves, "half-precision gradients", alone=True),
        Answer("W4", "one memory a shape", by_shape, "a memory for each tensor", alone=True),
        Answer("W12", "no return", nothing_back, "returns what was sent", alone=True),
        Answer("W13", "asks again what was sent", sends_twice, "one message a step", alone=True),
        Answer("W14", "clears what is not there", starts_anew, "a tensor that stays away", alone=True),
        Answer("W15", "adds into the gradient", into_the_gradient, "gradients untouched", alone=True),
    ),
    "32.top_k": (
        Answer("W5", "an index of two ranks is overwritten", overwrites, "an index of several ranks", alone=True),
        Answer("W6", "divides by who sent it", by_who_sent, "divided by all ranks", alone=True),
        Answer("W7", "more than k on ties", above_the_kth, "k, also on ties", alone=True),
        Answer("W16", "the largest with their sign", the_greatest, "by size, not by sign", alone=True),
        Answer("W17", "zeros travel, too", densely, "pairs on the wire", alone=True),
        Answer("W18", "the back end can do it", by_the_back_end, "made of exchanges", alone=True),
        Answer("W19", "takes what is sent out of x", clears, "input untouched", alone=True),
        Answer("W20", "somebody else is there", at_least_two, "one rank alone", alone=True),
        Answer("W21", "the pairs, as they came", pairs_back, "returns a tensor like its input", alone=True),
        Answer("W22", "ranks share variables", over_a_shared_board, "real processes", alone=True),
    ),
    "32.power_sgd": compress_wrong_low_rank.ANSWERS,
    "32.pick": (
        Answer("W11", "the highest ratio always", choices.highest_ratio, "many ranks"),
        Answer("W23", "compression is for large clusters", choices.never, "a slow wire", alone=True),
        Answer("W24", "pairs are summed on the way", choices.gathers_like_a_ring, "many ranks", alone=True),
        Answer("W25", "computing is free", choices.computing_is_free, "a fast wire", alone=True),
        Answer("W26", "bytes alone", choices.no_latency, "a long way", alone=True),
        Answer("W27", "how many times shorter", choices.a_number, "one of the three", alone=True),
    ),
}
