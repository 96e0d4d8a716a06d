"""Tensor fusion: gradients wait side by side in one pool, and travel together as soon as enough of them are there.

    backward   w4 -> w3 -> w2 -> w1 -> w0          a message costs its latency, whatever it carries: five small ones
    pool      [w4 | w3 | w2 | w1 | w0]             take five times as long as one
    launched  [w4   w3   w2] [w1   w0]             [1] a run is full when it holds `threshold_bytes`
                  run 0        run 1, the tail     [2] the last run is full when the last gradient is there

Where runs end is fixed by the sizes alone, and they are launched in the order of the pool [3], however early a gradient
is ready on one rank: otherwise ranks would send different messages, or each would wait for another one.

Law: t tensors in f runs are f all-reduces in place of t; the bytes are the same.

Papers: Jia et al. (Tencent) 2018, arXiv 1807.11205 (tensor fusion); Sun et al. (SenseTime) 2019, arXiv 1902.06855
(GradientFlow's lazy all-reduce: one pool in backward order, whose slices are sent as they lie).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule
from lt_core.collectives.agreement import Agreed
from lt_core.collectives.machine import Prepared
from lt_core.collectives.reducer import Reducer
from lt_core.comm.comm import Comm


class Run(NamedTuple):
    """Neighbours in the pool that travel together: the slice (n,) that holds them all, and its views by name."""

    number: int
    flat: Tensor
    grads: dict[str, Tensor]


Launch = Callable[[Run], None]  # makes every gradient of a run the mean over ranks, in place


class Pool:
    """Gradients in one buffer (one for each dtype): `pool.put(name, grad)` as each is ready, `pool.flush()` at the end.

    like: a tensor of each gradient's shape and dtype, by name, in the order in which a backward makes them.
    launch: `by_schedule(comm, ring.schedule)` or `by_reducer(comm, reducer)`.
    grads: by name, where each gradient lies, and its mean after `flush`: views, good for any `parameter.grad`.
    """

    def __init__(self, like: Mapping[str, Tensor], threshold_bytes: int, launch: Launch) -> None:
        if threshold_bytes < 1:
            raise UserError("a pool that is never full", f"threshold_bytes={threshold_bytes}", "at least 1")
        self.runs = _laid_out(like, threshold_bytes)
        self.grads = {name: view for run in self.runs for name, view in run.grads.items()}
        self._launch, self._ready, self._launched = launch, set[str](), 0

    def put(self, name: str, grad: Tensor | None = None) -> None:
        """`grad` is ready, or was written to `grads[name]` already.

        Errors: an unknown name, one that is there, another shape.
        """
        if name not in self.grads or name in self._ready:
            state = "was put already, and not flushed" if name in self._ready else "is not in the pool"
            raise UserError(f"{name} {state}", expected=f"one of {', '.join(self._missing()) or 'none: all are there'}")
        if grad is not None:
            place = self.grads[name]
            if grad.shape != place.shape:  # one element would fill the place of many
                raise UserError(f"{name} has another shape", tuple(grad.shape), tuple(place.shape), "a new pool")
            place.copy_(grad.detach())
        self._ready.add(name)
        while self._launched < len(self.runs) and self.runs[self._launched].grads.keys() <= self._ready:  # [1] [3]
            self._launch(self.runs[self._launched])
            self._launched += 1

    def flush(self) -> dict[str, Tensor]:
        """The means of all gradients; the pool is ready for the next step. Errors: gradients that were not put."""
        if missing := self._missing():
            raise UserError(
                "the pool waits for gradients", ", ".join(missing), "all of them", "put zeros for unused ones"
            )
        self._ready.clear()
        self._launched = 0
        return self.grads

    def _missing(self) -> list[str]:
        return [name for name in self.grads if name not in self._ready]


def runs(nbytes: Sequence[int], threshold_bytes: int) -> list[range]:
    """Which neighbours travel together, by place: as many as reach the threshold [1], then the rest [2]."""
    found, start, held = list[range](), 0, 0
    for place, more in enumerate(nbytes):
        held += more
        if held >= threshold_bytes:
            found.append(range(start, place + 1))
            start, held = place + 1, 0
    return [*found, range(start, len(nbytes))] if start < len(nbytes) else found


def _laid_out(like: Mapping[str, Tensor], threshold_bytes: int) -> list[Run]:
    """The runs of all dtypes, in the order in which a backward completes them."""
    groups: dict[tuple[torch.dtype, torch.device], dict[str, Tensor]] = {}
    for name, x in like.items():
        groups.setdefault((x.dtype, x.device), {})[name] = x
    place = {name: k for k, name in enumerate(like)}
    found = []
    for (dtype, device), members in groups.items():
        names, elements = list(members), [x.numel() for x in members.values()]
        with torch.inference_mode(False):  # so that it serves in any mode
            pieces = torch.zeros(sum(elements), dtype=dtype, device=device)
        for part in runs([n * dtype.itemsize for n in elements], threshold_bytes):
            low, high = sum(elements[: part.start]), sum(elements[: part.stop])
            views = pieces[low:high].split_with_sizes(elements[part.start : part.stop])
            mine = names[part.start : part.stop]
            found.append(Run(0, pieces[low:high], {n: v.view(members[n].shape) for n, v in zip(mine, views)}))
    found.sort(key=lambda run: max(place[name] for name in run.grads))
    return [run._replace(number=k) for k, run in enumerate(found)]


def by_schedule(comm: Comm, schedule_of: Callable[[int], Schedule]) -> Launch:
    """Each run of one pool as it lies, without a copy, by the schedule which `schedule_of(nbytes)` gives for its bytes.

    Tencent's hybrid is `by_schedule(comm, lambda nbytes: hierarchical.hybrid(comm.size, nbytes, threshold))`.
    """
    prepared, agreed = dict[int, Prepared](), Agreed()

    def launch(run: Run) -> None:
        if run.number not in prepared:
            agreed(run.grads, comm)
            prepared[run.number] = Prepared(comm, run.flat, schedule_of(run.flat.nbytes))
        prepared[run.number]()
        run.flat.div_(comm.size)

    return launch


def by_reducer(comm: Comm, reducer: Reducer) -> Launch:
    """Each run as a bucket of any Reducer."""

    def launch(run: Run) -> None:
        for name, mean in reducer.reduce(run.grads, comm).mean.items():
            run.grads[name].copy_(mean)

    return launch
