"""Work that was begun under the contract, and the search for work that nobody waited for."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass

from lt_core.base.errors import Misuse
from lt_core.base.work import Work
from lt_core.comm.contract.buffers import Owned, Roles
from lt_core.comm.contract.waits import Missing


@dataclass(eq=False)
class Record:
    """A started call: in words, its buffers, whose part is missing, and the work of the communicator beneath."""

    words: str
    owned: Owned
    missing: Callable[[], Missing]
    work: Work


class Started:
    """The Work that the user holds."""

    def __init__(self, record: Record, finish: Callable[[Record], None], lost: Callable[[Record], object]) -> None:
        self._record, self._finish = record, finish
        self._unwaited = weakref.finalize(self, lost, record)
        self._unwaited.atexit = False

    def wait(self) -> None:
        """Hold until it is over, and hand out the results. Errors: buffers that were used meanwhile; see `Contract`."""
        if self._unwaited.detach():
            self._finish(self._record)

    def span(self) -> tuple[float, float]:
        """(start, end) in seconds of `time.perf_counter`, once waited for."""
        return self._record.work.span()


class Unwaited:
    """What a rank started and has not waited for."""

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._open: list[Record] = []
        self._lost: list[Record] = []

    def add(self, record: Record, finish: Callable[[Record], None]) -> Started:
        """Keep its buffers in sight; the Work for the user."""
        self._open.append(record)
        return Started(record, finish, self._lost.append)

    def remove(self, record: Record) -> None:
        """It was waited for."""
        self._open.remove(record)

    def check(self, verb: str, tensors: Roles) -> None:
        """Refuse a call while work was lost, or one that touches what started work owns."""
        if self._lost:
            raise self._never(self._lost[0])
        for record in self._open:
            if record.owned.touched(tensors):
                what = f"rank {self._rank} gives {verb} a tensor of its {record.words}, which is not over"
                raise Misuse(what, attempt="wait() for what was started first")

    def close(self) -> None:
        """Refuse to end while something was never waited for."""
        if self._open:
            raise self._never(self._open[0])

    def _never(self, record: Record) -> Misuse:
        what = f"rank {self._rank} never waited for its {record.words}"
        return Misuse(what, attempt="keep the Work that start returns, and wait() for it")
