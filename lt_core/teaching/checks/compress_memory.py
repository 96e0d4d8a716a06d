"""What is asked of error feedback: a few steps are played with a reducer that sends each tensor's largest element.

feedback(memory, grads, send) -> sent     grads: a tensor a name; send(x) gives what x became on the wire
                                          memory: yours, empty before the first step, the same dict every time
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lt_core.teaching.checks.exercise import Make, Run

Tensors = dict[str, Tensor]


class Step(NamedTuple):
    """One call: what it was handed, the same afterwards, what it handed to `send`, what it returned."""

    given: Tensors
    after: Tensors
    asked: list[Tensors]
    value: Any


def steps(count: int, *names: str, dtype: torch.dtype = torch.float64, leave_out: int = -1) -> Make:
    """`count` steps of gradients with these names, all of one shape; in step `leave_out` the last name is missing."""

    def made(random: torch.Generator, size: int, elements: int) -> list[list[Tensors]]:
        values = torch.randint(1, 100, (count, len(names), elements), generator=random) / 64
        walk = [dict(zip(names if k != leave_out else names[:-1], one.to(dtype))) for k, one in enumerate(values)]
        return [walk] * size

    return made


def small(random: torch.Generator, size: int, elements: int) -> list[list[Tensors]]:
    """Half-precision gradients whose last bits, all set, vanish beside what has gathered if that has 16 bits."""
    x = torch.full((elements,), 1.0)
    x[1:] += (1 + 2 * torch.randint(4, (elements - 1,), generator=random)) / 1024
    return [[{"w": x.half()}] * 40] * size


def largest_alone(x: Mapping[str, Tensor]) -> Tensors:
    """Each tensor with its largest element, and zeros."""
    sent = {name: torch.zeros_like(t) for name, t in x.items()}
    for name, t in x.items():
        sent[name][t.abs().argmax()] = t[t.abs().argmax()]
    return sent


def play(fn: Callable[..., Any], comm: object, walk: Sequence[Tensors]) -> list[Step]:
    """All steps, one after the other, with one memory."""
    memory: dict[Any, Any] = {}
    played = []
    for grads in walk:
        given, mine, asked = _copied(grads), _copied(grads), list[Tensors]()

        def send(x: Tensors, asked: list[Tensors] = asked) -> Tensors:
            asked.append(_copied(x))
            return largest_alone(x)

        value = fn(memory, mine, send)
        played.append(Step(given, mine, asked, _copied(value) if _tensors(value) else value))
    return played


def returns_sent(run: Run) -> str:
    """A judge: what `send` gave comes back in the first step."""
    first = run.values()[0][0]
    if not first.asked:
        return f"{run.case}: send was never called"
    wanted = largest_alone(first.asked[-1])
    if not _tensors(first.value) or set(first.value) != set(wanted):
        return f"{run.case}: it returned {type(first.value).__name__} {first.value!r:.40}; what send gave is wanted"
    wrong = [name for name, x in wanted.items() if not torch.equal(first.value[name], x)]
    return f"{run.case}: what it returned for {wrong[0]} is not what send gave" if wrong else ""


def sends_once(run: Run) -> str:
    """A judge: each step has one message."""
    for k, step in enumerate(run.values()[0]):
        if len(step.asked) != 1:
            return f"{run.case}: in step {k} send was called {len(step.asked)} times; each call is a message"
    return ""


def hands_over(run: Run) -> str:
    """A judge: what is sent in each step is the gradient and all that still waits."""
    waiting: Tensors = {}
    for k, step in enumerate(run.values()[0]):
        for name, gradient in step.given.items():
            wanted = gradient.double() + waiting.get(name, torch.zeros_like(gradient, dtype=torch.float64))
            got = step.asked[0].get(name) if step.asked else None
            if got is None or got.shape != wanted.shape or not torch.allclose(got.double(), wanted, rtol=1e-12):
                return f"{run.case}: step {k} {_sends(name, got, gradient, wanted)}"
            waiting[name] = wanted - largest_alone({name: wanted})[name]
    return ""


def conserves(run: Run) -> str:
    """A judge: at the end nothing is missing, to the precision of 32 bits."""
    played = run.values()[0]
    handed, sent = 0.0, 0.0
    for step in played[:-1]:
        handed, sent = handed + step.given["w"].double(), sent + step.value["w"].double()
    asked = played[-1].asked[0]["w"]  # who rounds what is sent, and keeps the rest, is right as well
    expected = (handed + played[-1].given["w"].double() - sent).to(asked.dtype)
    worst = float((asked.double() - expected.double()).abs().max())
    if worst <= 1e-5:
        return ""
    return f"{run.case}: after {len(played)} steps {worst:.2g} of an element is lost; keep what waits in 32 bits"


def leaves_gradients(run: Run) -> str:
    """A judge: what the caller handed over is as it was."""
    for k, step in enumerate(run.values()[0]):
        for name, x in step.given.items():
            if not torch.equal(step.after[name], x):
                return f"{run.case}: gradient {name} is another after step {k}; add into a tensor of your own"
    return ""


def _tensors(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(x, Tensor) for x in value.values())


def _copied(x: Mapping[str, Tensor]) -> Tensors:
    return {name: t.clone() for name, t in x.items()}


def _sends(name: str, got: Tensor | None, gradient: Tensor, wanted: Tensor) -> str:
    """What was handed to `send`, and what of it does not come from the gradient."""
    if got is None or got.shape != wanted.shape:
        what = "nothing" if got is None else f"a tensor of {tuple(got.shape)}"
        return f"sends {what} as {name}; {_shown(wanted)} is due"
    added, waits = _shown(got.double() - gradient.double()), _shown(wanted - gradient.double())
    return f"sends {name} = {_shown(got)}, the gradient plus {added}; {waits} should have been kept for it"


def _shown(x: Tensor) -> str:
    return f"[{', '.join(f'{v:g}' for v in x.reshape(-1)[:4].tolist())}]"
