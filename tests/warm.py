"""One launch of 8 ranks for the whole session: it starts when the first test asks, and takes one test after another.

A test that raises leaves the ranks as they are; only its subset is made anew. Where a rank died, or does not answer
in time, all of them are, and the test that did it pays for that.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from lt_core.base.errors import Deadline
from lt_core.comm import Comm, failure, host, launch, parcel
from lt_core.comm.contract import under_contract
from lt_core.comm.control import Served, served

RANKS = 8
START_S, ANSWER_S, WAIT_S = 120, 45, 30  # until all are up; for one test; for one wait of a rank


class Desk:
    """Where ranks fetch what to run and bring what came out. Its methods are called from threads of all ranks."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._number, self._job, self.closed = 0, (0, b""), False
        self.pids: dict[int, int] = {}
        self.answers: dict[int, bytes] = {}
        self.targets: list[object] = []  # what `served` arguments of the job stand for

    def ask(self, index: int, name: str, args: tuple[Any, ...]) -> Any:
        """Call an object of the test's own, for a rank."""
        return getattr(self.targets[index], name)(*args)

    def hello(self, rank: int, pid: int) -> None:
        """A rank is up."""
        with self._changed:
            self.pids[rank] = pid
            self._changed.notify_all()

    def fetch(self, last: int) -> tuple[int, int, bytes] | None:
        """The job after number `last`, as (number, size, call), once it is there; None once none will come."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self._number > last)
            return None if self.closed else (self._number, *self._job)

    def bring(self, rank: int, number: int, answer: bytes) -> None:
        """What a rank made of a job."""
        with self._changed:
            if number == self._number:
                self.answers[rank] = answer
                self._changed.notify_all()

    def give(self, size: int, call: bytes) -> None:
        """A new job for ranks 0 to size - 1."""
        with self._changed:
            self._number, self._job, self.answers = self._number + 1, (size, call), {}
            self._changed.notify_all()

    def wait(self, ready: Callable[[], bool], timeout_s: float) -> None:
        """Hold until something is so, the desk is closed, or the time is over."""
        with self._changed:
            self._changed.wait_for(lambda: self.closed or ready(), timeout_s)

    def close(self) -> None:
        """Send everybody home."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()


def serve(comm: Comm, desk: Desk) -> None:
    """What each of the 8 ranks does all the time."""
    comm.timeout_s = WAIT_S
    desk.hello(comm.rank, os.getpid())
    last = 0
    while job := desk.fetch(last):
        last, size, call = job
        group = comm.subset(range(size))  # a new one where a test has ended it
        if comm.rank < size:
            group.timeout_s = WAIT_S
            desk.bring(comm.rank, last, _outcome(group, call, desk))


class Asked:
    """A rank's end of a `served` argument; it stands for number `index` of the desk's targets."""

    def __init__(self, index: int) -> None:
        self.index, self.desk = index, None

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args: self.desk.ask(self.index, name, args)


def _outcome(group: Comm, call: bytes, desk: Desk) -> bytes:
    try:
        fn, args, checked = parcel.unpacked(call)
        for arg in args:
            if isinstance(arg, Asked):
                arg.desk = desk
        return parcel.packed("the result", under_contract(group, fn, *args) if checked else fn(group, *args))
    except BaseException as error:
        failed = failure.of_exception(group.rank, time.monotonic(), error)
        group.abort(f"rank {group.rank} raised {failed.kind}: {failed.message}")
        return parcel.packed("the failure", failed)


class Warm:
    """The launch, in a thread of this process. Close it."""

    def __init__(self, backend: str) -> None:
        self._desk = Desk()
        self._error: BaseException = Deadline(f"{RANKS} ranks were not up within {START_S} s")
        self._thread = threading.Thread(target=self._launch, args=(backend,), name="warm group", daemon=True)
        self._thread.start()
        self._desk.wait(lambda: len(self._desk.pids) == RANKS, START_S)
        if len(self._desk.pids) < RANKS:
            self.close()
            raise self._error

    @property
    def lives(self) -> bool:
        """Whether it can take another test."""
        return self._thread.is_alive()

    def run(self, size: int, fn: Callable[..., Any], args: tuple[Any, ...], checked: bool = True) -> list[Any]:
        """`fn(comm, *args)` on ranks 0 to size - 1, within NCCL's contract if `checked`. Raises what a launch would."""
        self._desk.targets = [arg.target for arg in args if isinstance(arg, Served)]
        numbers = iter(range(len(args)))
        stands = tuple(Asked(next(numbers)) if isinstance(arg, Served) else arg for arg in args)
        call = parcel.packed("the call", (fn, stands, checked))
        self._desk.give(size, call)
        try:
            self._desk.wait(lambda: len(self._desk.answers) == size, ANSWER_S)
        except BaseException:  # the test's time is over
            self.end()
            raise
        return self._results(size)

    def close(self) -> None:
        """Let the ranks leave."""
        self._desk.close()
        self._thread.join(30)
        if self.lives:
            self.end()

    def end(self) -> None:
        """End the ranks, by id, whatever they do."""
        host.end(lambda: list(self._desk.pids.values()))
        self._thread.join(30)

    def _launch(self, backend: str) -> None:
        try:
            launch(serve, RANKS, served(self._desk), backend=backend, timeout_s=START_S)
        except BaseException as error:
            self._error = error
        self._desk.close()

    def _results(self, size: int) -> list[Any]:
        answers = {rank: parcel.unpacked(answer) for rank, answer in self._desk.answers.items()}
        failures = [answer for answer in answers.values() if isinstance(answer, failure.Failure)]
        silent = [rank for rank in range(size) if rank not in answers]
        if silent and self._desk.closed:  # the launch itself has ended
            self._thread.join(30)
            raise self._error
        if silent:
            self.end()
        said = f"ranks {silent} did not answer within {ANSWER_S} s, so all {RANKS} were ended" if silent else ""
        if failures:
            raise failure.error(failures, said)
        if silent:
            raise Deadline(said)
        return [answers[rank] for rank in range(size)]
