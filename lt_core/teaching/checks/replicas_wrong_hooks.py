"""Wrong answers to lab 21's hooks, and to its choice of a bucket, each with the property that refuses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor, nn

from lt_core.base.cluster import Wire
from lt_core.base.work import Work
from lt_core.comm.comm import Comm
from lt_core.teaching.checks.exercise import Answer
from lt_core.teaching.checks.replicas_answers import landed, overlap, pick
from lt_core.teaching.checks.replicas_pick import CHOICES


def all_at_the_end(model: nn.Module, comm: Comm) -> Callable[[], None]:
    """Right, but the hooks are for show."""

    def finish() -> None:
        for grad in [p.grad for p in model.parameters() if p.grad is not None]:
            comm.all_reduce(grad)
            grad /= comm.size

    return finish


def waits_at_once(model: nn.Module, comm: Comm) -> Callable[[], None]:
    """Right, and nothing is hidden: the backward stands still while each message travels."""
    waiting, ready = list(model.parameters())[::-1], set[nn.Parameter]()

    def hook(p: nn.Parameter) -> None:
        ready.add(p)
        while waiting and waiting[0] in ready:
            first = waiting.pop(0).grad
            assert first is not None
            comm.all_reduce(first)
            first /= comm.size

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]  # torch's
    return lambda: None


def too_early(model: nn.Module, comm: Comm) -> Callable[[], None]:
    """A tensor's own hook comes before the gradient is added to what was there."""
    waiting, ready = list(model.parameters())[::-1], dict[nn.Parameter, Tensor]()
    begun: list[tuple[nn.Parameter, Tensor, Work]] = []

    def hook(p: nn.Parameter, grad: Tensor) -> None:
        ready[p] = grad.clone()
        while waiting and waiting[0] in ready:
            first = waiting.pop(0)
            begun.append((first, ready[first], comm.start("all_reduce", ready[first])))

    for p in model.parameters():
        p.register_hook(partial(hook, p))  # type: ignore[no-untyped-call]  # torch's

    def finish() -> None:
        for p, total, work in begun:
            work.wait()
            p.grad = total / comm.size

    return finish


def by_arrival(model: nn.Module, comm: Comm) -> Callable[[], None]:
    """Whoever is ready leaves: on another rank that is another one."""
    begun: list[tuple[nn.Parameter, Work]] = []

    def hook(p: nn.Parameter) -> None:
        begun.append((p, comm.start("all_reduce", p.grad)))

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]  # torch's

    return lambda: landed(begun, comm)


def undivided(model: nn.Module, comm: Comm) -> Callable[[], None]:
    """The sum."""
    finish = overlap(model, comm)

    def sums() -> None:
        finish()
        for grad in [p.grad for p in model.parameters() if p.grad is not None]:
            grad *= comm.size

    return sums


def capped(low: int, high: int) -> Callable[..., int]:
    """The right answer, never below or above."""

    def answer(elements: Sequence[int], backward_s: float, p: int, wire: Wire) -> int:
        return min(max(pick(elements, backward_s, p, wire), low), high)

    return answer


def never_the_middle(elements: Sequence[int], backward_s: float, p: int, wire: Wire) -> int:
    """Small or large, there is nothing in between."""
    found = pick(elements, backward_s, p, wire)
    return CHOICES[2] if found == CHOICES[1] else found


WRONG: dict[str, tuple[Answer, ...]] = {
    "21.overlap": (
        Answer("W1", "sum without division", undivided, "values", alone=True),
        Answer(
            "W2",
            "all at the end",
            all_at_the_end,
            "begins in the backward",
            alone=True,
        ),
        Answer("W8", "waits inside the hook", waits_at_once, "waits for nothing in the backward", alone=True),
        Answer("W9", "the hook fires too early", too_early, "gradients that add up", alone=True),
        Answer("W6", "in the order of arrival", by_arrival, "any order", alone=True),
    ),
    "21.pick": (
        Answer("W10", "the largest", lambda *_: CHOICES[2], "a wire that answers at once"),
        Answer("W11", "the smallest", lambda *_: CHOICES[0], "a wire that answers late"),
        Answer("W12", "a number of its own", lambda *_: 123_456, "one of the choices", alone=True),
        Answer("W13", "never all at once", capped(0, CHOICES[1]), "a wire that answers late", alone=True),
        Answer(
            "W14", "never a block a bucket", capped(CHOICES[1], CHOICES[2]), "a wire that answers at once", alone=True
        ),
        Answer("W15", "small or large", never_the_middle, "a wire in between", alone=True),
    ),
}
