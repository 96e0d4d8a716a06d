"""Where a worker issues: on the host's clock, or on a CUDA stream of its own, timed by CUDA events.

On a CPU what `run` did is over when it returns. On a GPU it was only queued: `wait()` holds the stream of whoever
waits, not the host, and the times are read when all is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from lt_core.base.torch_compat import timing_event
from lt_core.base.work import Over, Work

if TYPE_CHECKING:
    import torch


def holds_host(work: Work) -> bool:
    """Whether `work.wait()` may keep the caller for long."""
    return not isinstance(work, Over | Queued)


class Streams(Protocol):
    """How the workers of one rank issue."""

    def worker(self) -> AbstractContextManager[None]:
        """Where one of several workers runs."""
        ...

    def issue(self, run: Callable[[], Work | None]) -> Work:
        """Call `run`; its own Work, or where it gave None one that says when it ran."""
        ...


def streams_of(device: torch.device | None) -> Streams:
    """CUDA streams for a CUDA device, the host for any other and for None."""
    return Cuda(device) if device is not None and device.type == "cuda" else Host()


class Host:
    """A worker is a thread, the clock is the host's."""

    def worker(self) -> AbstractContextManager[None]:
        """Nothing to set up."""
        return nullcontext()

    def issue(self, run: Callable[[], Work | None]) -> Work:
        """Over on return, unless `run` gave a Work."""
        start_s = perf_counter()
        work = run()
        return Over(start_s, perf_counter()) if work is None else work


class Cuda:
    """A worker is a thread with a stream of its own, which follows the caller's and is followed by it."""

    def __init__(self, device: torch.device) -> None:
        from torch import cuda

        self.device, self.caller = device, cuda.current_stream(device)
        self.origin = timing_event()
        self.origin.record(self.caller)
        self.origin.synchronize()
        self.origin_s = perf_counter()  # the moment from which CUDA's elapsed times are counted

    @contextmanager
    def worker(self) -> Iterator[None]:
        """A new stream, current inside."""
        from torch import cuda

        own = cuda.Stream(self.device)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        own.wait_stream(self.caller)
        with cuda.stream(own):
            yield
        self.caller.wait_stream(own)

    def issue(self, run: Callable[[], Work | None]) -> Work:
        """Events before and after, on the current stream."""
        start, end = timing_event(), timing_event()
        start.record()
        work = run()
        end.record()
        return Queued(self, start, end) if work is None else work


class Queued:
    """The Work of what was queued on a CUDA stream."""

    def __init__(self, streams: Cuda, start: torch.cuda.Event, end: torch.cuda.Event) -> None:
        self.streams, self.start, self.end = streams, start, end

    def wait(self) -> None:
        """The current stream goes on only after it."""
        self.end.wait()

    def span(self) -> tuple[float, float]:
        """Seconds on the host's clock; holds the host until it is over."""
        self.end.synchronize()
        origin, origin_s = self.streams.origin, self.streams.origin_s
        return origin_s + origin.elapsed_time(self.start) / 1e3, origin_s + origin.elapsed_time(self.end) / 1e3
