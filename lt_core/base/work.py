"""Something begun: its buffers belong to it until it has been waited for."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Work(Protocol):
    """What `Comm.start` and a machine's `run` give back."""

    def wait(self) -> None:
        """Hold until it is finished: the host on a CPU, the current stream on a GPU. Raises what went wrong."""
        ...

    def span(self) -> tuple[float, float]:
        """(start, end) in seconds of `time.perf_counter`, once waited for."""
        ...


class Over(NamedTuple):
    """The Work of something that was finished when it was handed out."""

    start_s: float
    end_s: float

    def wait(self) -> None:
        """Nothing to wait for."""

    def span(self) -> tuple[float, float]:
        """(start, end)."""
        return self.start_s, self.end_s
