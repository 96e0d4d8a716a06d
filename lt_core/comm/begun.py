"""A verb of processes under way: whom it waits for, for how long, and what went wrong in words."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lt_core.base.errors import Aborted, Deadline
from lt_core.base.torch_compat import timing_event
from lt_core.comm.failure import CONSEQUENCE
from lt_core.comm.sums import divider

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Work as TorchWork

    from lt_core.comm.comm import Ends
    from lt_core.comm.processes import Processes

Missing = Callable[[int], str]
ADDRESS = re.compile(r" \[\S+\]:\d+")  # a port is another one each time
SHORTEST_S = 0.001  # torch takes 0 for "no limit"


def begin(
    comm: Processes, verb: str, works: Sequence[TorchWork], held: Sequence[Tensor], missing: Missing
) -> Begun | OnGpu:
    """The Work of what was posted."""
    return OnGpu(comm, verb, works, held) if comm.backend == "nccl" else Begun(comm, verb, works, held, missing)


class Summing:
    """What a verb of processes may leave to its end. total: a sum that is to become a mean."""

    total: Tensor | None = None

    def _divide(self, ranks: int) -> None:
        """Do it, once."""
        total, self.total = self.total, None
        if total is not None:
            with torch.inference_mode():
                divider(ranks, total)(total.detach())


class Begun(Summing):
    """The Work of a verb on CPUs. `missing(i)`: what `works[i]` waits for, in words."""

    def __init__(
        self, comm: Processes, verb: str, works: Sequence[TorchWork], held: Sequence[Tensor], missing: Missing
    ) -> None:
        self._comm, self._verb, self._works, self._held, self._missing = comm, verb, works, held, missing
        self._start_s, self._end_s = time.perf_counter(), 0.0
        self._failed: Exception | None = None

    def wait(self) -> None:
        """Hold until it is over. Raises `Deadline`, or `Aborted` where the communicator or a peer has ended."""
        if self._failed:
            raise self._failed
        until_s = time.perf_counter() + self._comm.timeout_s
        for index, work in enumerate(self._works):
            left_s = max(until_s - time.perf_counter(), SHORTEST_S)
            try:
                work.wait(timedelta(seconds=left_s))
            except RuntimeError as error:
                late = self._missing(index) if time.perf_counter() > until_s - SHORTEST_S else ""
                self._failed = self._comm.broken(self._verb, error, late)
                raise self._failed from None
        self._end_s = self._end_s or time.perf_counter()
        self._divide(self._comm.size)
        self._works, self._held = (), ()

    def note_end(self) -> None:
        """Note when it ends, not only when it is found to have ended; gloo does not tell that of single messages."""
        for work in self._works:
            work.get_future().add_done_callback(self._ended)

    def span(self) -> tuple[float, float]:
        """(start, end) in seconds of `time.perf_counter`, once waited for."""
        return self._start_s, self._end_s

    def _ended(self, _: object) -> None:
        self._end_s = self._end_s or time.perf_counter()


def told(comm: Processes, verb: str, error: RuntimeError, late: str) -> Exception:
    """An error of the back end in our words: why the communicator ended, that the time is over, that a peer left."""
    if comm.ended:
        return Aborted(comm.ended)
    if late:
        return Deadline(f"rank {comm.rank} waited {comm.timeout_s:g} s in {verb}: {late}")
    if CONSEQUENCE.search(str(error)):
        line = ADDRESS.sub("", str(error).rpartition("] ")[2]).partition(". ")[0]
        return Aborted(f"rank {comm.rank} lost a peer in {verb} ({line})")
    return error


def open_end(index: int, sends: Ends, receives: Ends) -> str:
    """Which end of an exchange is not over: the receives were posted first."""
    if index < len(receives):
        return f"nothing came from rank {receives[index][1]}"
    return f"rank {sends[index - len(receives)][1]} took nothing"


class OnGpu(Summing):
    """The Work of a verb on GPUs: `wait` holds the current stream, events tell the time, NCCL keeps the deadline."""

    def __init__(self, comm: Processes, verb: str, works: Sequence[TorchWork], held: Sequence[Tensor]) -> None:
        self._comm, self._verb, self._works, self._held = comm, verb, works, held
        self._start, self._end = timing_event(), timing_event()
        self._start.record()
        self._start_s = time.perf_counter()

    def wait(self) -> None:
        """Hold the current stream until it is over."""
        try:
            for work in self._works:
                work.wait()
        except RuntimeError as error:
            raise self._comm.broken(self._verb, error) from None
        self._end.record()
        self._divide(self._comm.size)

    def note_end(self) -> None:
        """Nothing to do: the event is in the stream."""

    def span(self) -> tuple[float, float]:
        """(start, end) in seconds of `time.perf_counter`, once waited for; holds the host until it is over."""
        self._end.synchronize()
        return self._start_s, self._start_s + self._start.elapsed_time(self._end) / 1e3
