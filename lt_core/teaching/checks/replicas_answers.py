"""Right answers to lab 21, of different shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from lt_core.base.cluster import Wire
from lt_core.base.work import Work
from lt_core.collectives import ring
from lt_core.comm.comm import Comm
from lt_core.data_parallel.replicate import overlapped
from lt_core.data_parallel.replicate.buckets import bucket_elements, in_backward_order
from lt_core.data_parallel.replicate.roll import call_roll
from lt_core.teaching.checks.replicas_pick import CHOICE, CHOICES, Question


def used_anywhere(comm: Comm, model: nn.Module) -> list[nn.Parameter]:
    """The parameters of which some rank has a gradient, from the last one on."""
    parameters = list(model.parameters())[::-1]
    used = torch.tensor([p.grad is not None for p in parameters], dtype=torch.int64)
    comm.all_reduce(used)
    return [p for p, n in zip(parameters, used.tolist()) if n]


def buckets(parameters: Sequence[nn.Parameter], nbytes: int) -> list[list[nn.Parameter]]:
    """Of one dtype each, filled up to `nbytes`."""
    found: list[list[nn.Parameter]] = []
    for dtype in dict.fromkeys(p.dtype for p in parameters):
        found.append([])
        for p in (p for p in parameters if p.dtype is dtype):
            if found[-1] and sum(q.nbytes for q in found[-1]) + p.nbytes > nbytes:
                found.append([])
            found[-1].append(p)
    return found


def flat_of(bucket: Sequence[nn.Parameter]) -> Tensor:
    """All gradients of a bucket in one tensor; zeros where there is none."""
    return torch.cat([torch.zeros_like(p).view(-1) if p.grad is None else p.grad.reshape(-1) for p in bucket])


def give_back(bucket: Sequence[nn.Parameter], flat: Tensor) -> None:
    """Each parameter its piece."""
    for p, piece in zip(bucket, flat.split_with_sizes([p.numel() for p in bucket])):
        p.grad = piece.view(p.shape)


def take_mean(bucket: Sequence[nn.Parameter], comm: Comm) -> None:
    """One all-reduce, and each parameter its piece of the mean."""
    flat = flat_of(bucket)
    comm.all_reduce(flat)
    give_back(bucket, flat / comm.size)


def average_gradients(model: nn.Module, comm: Comm, bucket_bytes: int) -> None:
    """Ask who has what, then an all-reduce a bucket."""
    for bucket in buckets(used_anywhere(comm, model), bucket_bytes):
        take_mean(bucket, comm)


def with_the_project_s_parts(model: nn.Module, comm: Comm, bucket_bytes: int) -> None:
    """The roll and the buckets of lt_core, forwards."""
    parameters = dict(model.named_parameters())
    used = call_roll(comm, parameters).used
    for names in reversed(in_backward_order({name: parameters[name] for name in used}, bucket_bytes)):
        bucket = [parameters[name] for name in names]
        flat = flat_of(bucket)
        comm.start("all_reduce", flat).wait()
        give_back(bucket, flat.div_(comm.size))


def landed(begun: Sequence[tuple[nn.Parameter, Work]], comm: Comm) -> None:
    """Wait for every sum, and divide it by the ranks."""
    for p, work in begun:
        work.wait()
        assert p.grad is not None
        p.grad /= comm.size


def overlap(model: nn.Module, comm: Comm) -> Callable[[], None]:
    """Whoever is ready leaves, but nobody before those that come first in the fixed order."""
    waiting, ready = list(model.parameters())[::-1], set[nn.Parameter]()
    begun: list[tuple[nn.Parameter, Work]] = []

    def hook(p: nn.Parameter) -> None:
        ready.add(p)
        while waiting and waiting[0] in ready:
            first = waiting.pop(0)
            assert first.grad is not None
            begun.append((first, comm.start("all_reduce", first.grad)))

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]  # torch's

    return lambda: landed(begun, comm)


def overlap_in_one(model: nn.Module, comm: Comm) -> Callable[[], None]:
    """One bucket, which leaves with the last gradient of the backward."""
    parameters = list(model.parameters())
    left, begun = set(parameters), list[tuple[Tensor, Work]]()

    def hook(p: nn.Parameter) -> None:
        left.discard(p)
        if not left:
            flat = flat_of(parameters)
            begun.append((flat, comm.start("all_reduce", flat)))

    for p in parameters:
        p.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]  # torch's

    def finish() -> None:
        ((flat, work),) = begun
        work.wait()
        give_back(parameters, flat / comm.size)

    return finish


def by_the_project(model: nn.Module, comm: Comm) -> Callable[[], None]:
    """What this lab is about."""
    return overlapped.replicate(model, comm).sync


def pick(elements: Sequence[int], backward_s: float, p: int, wire: Wire) -> int:
    """The law of each choice."""
    return int(CHOICE.of(Question(elements, backward_s, p, wire)))


def pick_step_by_step(elements: Sequence[int], backward_s: float, p: int, wire: Wire) -> int:
    """Each bucket starts when it is full and the wire is free."""
    ends = {}
    for nbytes in CHOICES:
        sizes, end = bucket_elements(elements, 4, nbytes), 0.0
        for k, n in enumerate(sizes):
            ready = backward_s * sum(sizes[: k + 1]) / sum(sizes)
            end = max(end, ready) + ring.law_seconds(p, 4 * n, wire)
        ends[nbytes] = end
    return min(ends, key=lambda nbytes: ends[nbytes])


RIGHT: dict[str, tuple[Callable[..., object], ...]] = {
    "21.average": (average_gradients, with_the_project_s_parts),
    "21.overlap": (overlap, overlap_in_one, by_the_project),
    "21.pick": (pick, pick_step_by_step),
}
