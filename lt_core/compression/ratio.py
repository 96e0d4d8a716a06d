"""Which part of a bucket is sent: always the same, or one that changes from step to step, such as a warm-up.

    ratio 0.25 of 10 elements -> 2     a ratio by step is asked with the number of steps that this bucket has made

A ratio that is a number is one of the settings that ranks compare at first. What a function will say they cannot
compare, so they do it in each step: all must keep as many. Law: 8 (p - 1) bytes a rank for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from torch import Tensor

from lt_core.base.errors import Mismatch, UserError
from lt_core.comm.comm import Comm
from lt_core.compression.gather import gathered_numbers

Ratio = float | Callable[[int], float]  # which part is sent: always, or in step number n of a bucket


def part(ratio: float, what: str = "the part that is sent") -> float:
    """The ratio, checked. Errors: nothing, or more than all of it."""
    if not 0 < ratio <= 1:
        raise UserError(what, f"{ratio:g}", "above 0 and at most 1", "0.01 sends one element in a hundred")
    return ratio


def kept(ratio: float, elements: int) -> int:
    """How many of so many elements a ratio keeps: rounded, at least one, at most all."""
    return min(max(round(part(ratio) * elements), 1), elements)


def named(ratio: Ratio) -> str:
    """The ratio in words, for the comparison of settings between ranks."""
    return f"{part(ratio):g}" if not callable(ratio) else getattr(ratio, "__qualname__", type(ratio).__name__)


def kept_alike(comm: Comm, ratio: Ratio, now: float, elements: int) -> int:
    """How many of so many elements all ranks keep; now: the ratio of this step. Errors: `Mismatch`, on every rank."""
    count = kept(now, elements)
    counts = gathered_numbers(comm, count) if callable(ratio) else [count]
    other = next((r for r, n in enumerate(counts) if n != counts[0]), 0)
    if other:
        raise Mismatch(
            "the ranks keep different parts of a bucket",
            f"of {elements} rank 0 keeps {counts[0]}, rank {other} keeps {counts[other]}",
            "as many on every rank",
            "the same ratio, and the same number of steps, on every rank",
        )
    return count


class Steps:
    """How often each tensor was reduced, for ratios that change with time."""

    def __init__(self) -> None:
        self.done: dict[str, int] = {}
        self._before: dict[str, int] = {}  # the last step

    def now(self, ratio: Ratio, grads: Mapping[str, Tensor]) -> float:
        """The ratio of this step of a bucket, which has made as many as the one of its tensors that made most."""
        number = max((self.done.get(name, 0) for name in grads), default=0)
        now = ratio(number) if callable(ratio) else ratio
        self._before |= {name: self.done.get(name, 0) for name in grads}
        self.done |= dict.fromkeys(grads, number + 1)
        return now

    def undo(self, names: Iterable[str]) -> None:
        """Do not count the last step of these."""
        for name in self._before.keys() & set(names):
            self.done[name] = self._before.pop(name)

    def load(self, state: object) -> None:
        """Go on from a copy of `done`. Errors: anything else."""
        if not isinstance(state, Mapping) or not all(isinstance(number, int) for number in state.values()):
            raise UserError("this counts no steps", type(state).__name__, "whole numbers by name, from state_dict()")
        self.done, self._before = dict(state), {}
