"""What takes a bucket to its mean while the backward goes on: the communicator itself, or a thread beside it.

Summed    the communicator's own all-reduce, begun: nobody works on it here until the wait
Beside    any reducer, on one thread, bucket after bucket, so that the order is the same on all ranks; each after a
          short roll of its own, of who has which gradient
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.base.work import Work
from lt_core.collectives.reducer import Reducer
from lt_core.comm import laws
from lt_core.comm.comm import Comm
from lt_core.data_parallel.replicate.flat import Bucket
from lt_core.data_parallel.replicate.roll import used_by_some


class Landed(NamedTuple):
    """The means of a bucket, by name; when it travelled, in seconds of `time.perf_counter`; what this rank sent."""

    means: Mapping[str, Tensor]
    start_s: float
    end_s: float
    nbytes: int


class Carrier(Protocol):
    """Begins buckets; what `begin` gives waits for the means."""

    def begin(self, bucket: Bucket) -> Callable[[], Landed]:
        """Send a bucket off."""
        ...

    def close(self) -> None:
        """No bucket comes any more."""
        ...


class Summed:
    """Buckets are summed, and divided, where they lie."""

    def __init__(self, comm: Comm) -> None:
        self._comm = comm

    def begin(self, bucket: Bucket) -> Callable[[], Landed]:
        """Begin the all-reduce."""
        work = self._comm.start("all_reduce", bucket.flat, True)
        return lambda: self._landed(work, bucket)

    def close(self) -> None:
        """Nothing is left open."""

    def _landed(self, work: Work, bucket: Bucket) -> Landed:
        work.wait()
        return Landed(bucket.views, *work.span(), laws.all_reduce_bytes(bucket.flat.nbytes, self._comm.size))


class Beside:
    """Buckets go through a reducer on a thread."""

    def __init__(self, comm: Comm, reducer: Reducer) -> None:
        self._comm, self._reducer = comm, reducer
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"reducer of rank {comm.rank}")
        self._closed = False

    def begin(self, bucket: Bucket) -> Callable[[], Landed]:
        """Put it in the thread's queue. Errors: after `close`."""
        if self._closed:
            raise UserError("this replica was closed, and its reducer's thread has ended", attempt="replicate again")
        future: Future[Landed] = self._thread.submit(self._reduce, bucket)
        return future.result  # its verbs have deadlines

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self._thread.shutdown()

    @torch.no_grad()
    def _reduce(self, bucket: Bucket) -> Landed:
        # of others a reducer with memory would send what it remembers, and none would take it
        used = {name: bucket.views[name] for name in used_by_some(self._comm, bucket.parameters, bucket.used)}
        start_s, before = perf_counter(), self._comm.traffic.bytes
        means = self._reducer.reduce(used, self._comm).mean if used else {}
        return Landed(means, start_s, perf_counter(), self._comm.traffic.bytes - before)
