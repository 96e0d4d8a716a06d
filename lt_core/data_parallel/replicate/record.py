"""What a replica writes into a trace: forward and backward on the stream `compute`, buckets on `out`.

compute  |forward|backward ...   |      a forward lies between two hooks on the model; a backward begins where the
out                    |head.bias .. head.weight|       forward ended and has ended when `sync` is called
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from torch import nn

from lt_core.base.trace import Span, Trace


class Record:
    """The trace of one rank's steps. Close it."""

    def __init__(self, trace: Trace, rank: int, model: nn.Module) -> None:
        self._trace, self._rank = trace, rank
        self._since_s: float | None = None  # when what runs now began
        self._hooks = [model.register_forward_pre_hook(self._enter), model.register_forward_hook(self._leave)]

    def computed(self, name: str) -> None:
        """What ran since the last word has ended; nothing where no forward came before it."""
        now_s = perf_counter()
        if self._since_s is not None:
            self._trace.spans.append(Span(self._rank, "compute", name, self._since_s, now_s))
        self._since_s = now_s

    def travelled(self, names: Sequence[str], start_s: float, end_s: float, nbytes: int) -> None:
        """The mean of these gradients was under way, for which this rank sent `nbytes`."""
        name = names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"
        self._trace.spans.append(Span(self._rank, "out", name, start_s, end_s, nbytes))

    def over(self) -> None:
        """The step is over: what comes until the next forward is not of this."""
        self._since_s = None

    def close(self) -> None:
        """Take the hooks off."""
        for hook in self._hooks:
            hook.remove()

    def _enter(self, *_: Any) -> None:
        self._since_s = perf_counter()

    def _leave(self, *_: Any) -> None:
        self.computed("forward")
