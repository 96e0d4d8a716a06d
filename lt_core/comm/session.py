"""One launch as the launching process sees it: it starts the ranks, listens to them, and leaves nothing behind.

starting --started--> importing --ready--> running --done--> waits for the others --> leaves
                                                   --failed, or its process ended--> all end within a second
"""

from __future__ import annotations

import json
import os
import pickle
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType

from lt_core.base.errors import Deadline
from lt_core.comm import failure, host, kept, output
from lt_core.comm.control import Door
from lt_core.comm.failure import Failure
from lt_core.comm.folders import Folder

OTHERS_S = 0.3  # how long after the first failure the others may still say what they saw
LEAVE_S = 10.0  # how long finished ranks may take to end: their atexit functions, their threads


class Rank:
    """What is known of one rank: its state, its process, its pipes."""

    def __init__(self, folder: Path, rank: int) -> None:
        self.state, self.pid, self.watched = "starting", 0, -1
        self.stdout = output.Passed(folder / f"stdout.{rank}", "stdout")
        self.stderr = output.Passed(folder / f"stderr.{rank}", "stderr")

    def close(self) -> None:
        """Pass on the last lines."""
        self.stdout.close()
        self.stderr.close()
        if self.watched >= 0:
            os.close(self.watched)


class Session:
    """A launch under way. A context: at its end no process is left."""

    def __init__(self, folder: Folder, size: int) -> None:
        self.folder, self._lock = folder
        self.ranks = [Rank(self.folder, rank) for rank in range(size)]
        self.failures: list[Failure] = []
        self._here: set[int] = set()  # ranks whose process is known and has not ended
        self._deaths: dict[int, tuple[float, int | None]] = {}
        self._failed_s = self._over_s = 0.0  # when the first failure was seen; when torchrun ended
        self._selector = selectors.DefaultSelector()
        self._reports, self._begun = output.pipe(self.folder / "reports"), b""
        self._leave = output.pipe(self.folder / "leave")
        self._door: Door | None = None
        self._keeper: subprocess.Popen[bytes] | None = None

    def on(self, fd: int, act: Callable[[], None]) -> None:
        """Call `act` whenever the descriptor can be read."""
        self._selector.register(fd, selectors.EVENT_READ, act)

    def serve(self, targets: Sequence[object]) -> None:
        """Let the ranks call these objects."""
        self._door = Door(self.folder, targets)
        self.on(self._door.socket.fileno(), self._door.accept)

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start torchrun, with the keeper above it."""
        for rank in self.ranks:
            self.on(rank.stdout.fd, rank.stdout.pump)
            self.on(rank.stderr.fd, rank.stderr.pump)
        self.on(self._reports, self._hear)
        with open(self.folder / "torchrun.log", "wb") as log:
            self._keeper = kept.start(command, environment, Folder(self.folder, self._lock), log)
        assert self._keeper.stdout
        self.on(self._keeper.stdout.fileno(), self._torchrun_ended)

    def finish(self, timeout_s: float) -> None:
        """Hold until every rank has its result. Errors: `RankError`; `Deadline` where a rank does not come up."""
        until_s = time.monotonic() + timeout_s
        while not all(rank.state == "done" for rank in self.ranks):
            coming = [r for r, rank in enumerate(self.ranks) if rank.state in ("starting", "started")]
            if self._settled():
                raise self._error()
            if coming and time.monotonic() > until_s:
                raise Deadline(f"ranks {coming} were not ready after {timeout_s:g} s{output.ending(self._log())}")
            self._step(self._last_word_s() or (until_s if coming else None))
        os.write(self._leave, b"." * len(self.ranks))
        until_s = time.monotonic() + LEAVE_S
        while self._here and not self._over_s and time.monotonic() < until_s:
            self._step(until_s)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            if self._door:
                self._door.close()
            if self._keeper:
                kept.end(self._keeper, self.folder)
        finally:
            self._selector.close()
            for rank in self.ranks:
                rank.close()
            os.close(self._reports)
            os.close(self._leave)
            if self._keeper and self._keeper.stdout:
                self._keeper.stdout.close()

    def _step(self, until_s: float | None) -> None:
        wait_s = None if until_s is None else max(0.0, until_s - time.monotonic())
        for key, _ in self._selector.select(wait_s):
            key.data()

    def _hear(self) -> None:
        whole, self._begun = output.lines(self._reports, self._begun)
        for line in whole:
            said = json.loads(line)
            rank = self.ranks[said["rank"]]
            rank.state, rank.pid = said["what"], said["pid"]
            if rank.state == "started":
                self._watch(said["rank"], rank)
            elif rank.state == "failed":
                self.failures.append(pickle.loads((self.folder / f"failure.{said['rank']}").read_bytes()))
                self._failed_s = self._failed_s or time.monotonic()

    def _watch(self, number: int, rank: Rank) -> None:
        watched = host.watch(rank.pid)
        if watched is not None:  # elsewhere torchrun notices it, a tenth of a second later
            rank.watched = watched
            self.on(watched, partial(self._ended, number))
        self._here.add(number)

    def _ended(self, number: int) -> None:
        rank = self.ranks[number]
        self._selector.unregister(rank.watched)
        self._here.discard(number)
        self._hear()  # it may have spoken before it ended
        if rank.state not in ("done", "failed"):
            rank.state = "died"
            self._failed_s = self._failed_s or time.monotonic()
            status = host.wait_status(rank.pid)
            code = None if status is None else os.waitstatus_to_exitcode(status)
            self._deaths[number] = (time.monotonic(), code)

    def _torchrun_ended(self) -> None:
        assert self._keeper and self._keeper.stdout
        self._selector.unregister(self._keeper.stdout.fileno())
        self._over_s = time.monotonic()

    def _last_word_s(self) -> float:
        """Until when others may speak after something went wrong; 0 while nothing did."""
        return min((s for s in (self._failed_s, self._over_s) if s), default=-OTHERS_S) + OTHERS_S

    def _settled(self) -> bool:
        """Whether the launch failed and everybody who could say something about it has."""
        last_word_s = self._last_word_s()
        silent = {rank.state for rank in self.ranks} <= {"done", "failed", "died"} or (self._over_s and not self._here)
        return bool(last_word_s and (silent or time.monotonic() >= last_word_s))

    def _error(self) -> Exception:
        collected = failure.exit_codes(self._log())
        if self._over_s and not self._failed_s:  # before it could say so
            self._deaths = {r: (self._over_s, code) for r, code in collected.items()}
        for number, (at_s, code) in self._deaths.items():
            stderr = self.ranks[number].stderr
            stderr.pump()
            code = collected.get(number) if code is None else code
            if code != -signal.SIGTERM or not self.failures:  # torchrun ends the others so
                self.failures.append(failure.of_death(number, at_s, code, stderr.last))
        if not self.failures:
            return RuntimeError(f"torchrun ended before its ranks did{output.ending(self._log())}")
        finished = [number for number, rank in enumerate(self.ranks) if rank.state == "done"]
        return failure.error(self.failures, f"ranks {finished} had finished" if finished else "")

    def _log(self) -> str:
        return (self.folder / "torchrun.log").read_text(errors="replace")
