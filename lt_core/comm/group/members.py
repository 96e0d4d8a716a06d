"""The processes of one start as the kernel sees them: who lives, who says what, and how all of them end.

kernel -> keeper -> torchrun -> ranks -> what they started
"""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import zmq

from lt_core.comm import failure, host
from lt_core.comm.failure import Failure
from lt_core.comm.folders import Folder
from lt_core.comm.group import wire
from lt_core.comm.group.cell import Ask, Hello, Told
from lt_core.comm.group.ears import Ears

KEEPER = Path(__file__).parents[1] / "keeper.py"
POLL_S = 0.1  # how often ranks are looked after where the system does not tell that one has ended


class Death(NamedTuple):
    """When a rank's process ended, and how: minus a signal's number, or its exit code; None while nobody knows."""

    at_s: float
    code: int | None


class Members:
    """A started group's processes, its wire and its pipes; `close` ends all of it."""

    def __init__(self, folder: Folder, size: int) -> None:
        self.folder, self.size = folder.path, size
        self.pids: dict[int, int] = {}
        self.deaths: dict[int, Death] = {}
        self.ended = ""  # why the keeper has ended, once it has
        self.refused = 0  # messages with a wrong key
        self.ears = Ears(self.folder, size)
        self._lock, self._process = folder.lock, os.getpid()
        self._wire = wire.Wire(wire.new_key(self.folder))
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.ROUTER)
        for option, value in ((zmq.ROUTER_MANDATORY, 1), (zmq.LINGER, 0), (zmq.MAXMSGSIZE, wire.CAP_BYTES)):
            self._socket.setsockopt(option, value)
        self._socket.bind(f"ipc://{self.folder / wire.SOCKET}")
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self.ears.woken, zmq.POLLIN)
        self._watched: dict[int, int] = {}
        self._inbox: list[object] = []
        self._log: IO[bytes] = open(self.folder / "torchrun.log", "w+b")  # noqa: SIM115
        self.keeper: subprocess.Popen[bytes] | None = None
        self._closing = threading.Event()

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start torchrun with the keeper above it, which alone holds the folder's lock from now on."""
        keeper = [sys.executable, "-S", "-E", str(KEEPER), str(os.getpid())]
        self.keeper = subprocess.Popen(
            [*keeper, *command], env={**environment, host.MARK: str(self.folder)}, pass_fds=[self._lock],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True,
        )  # fmt: skip
        os.close(self._lock)
        self._lock = -1
        assert self.keeper.stdout
        self.ears.on(self.keeper.stdout.fileno(), self._keeper_ended)
        self.ears.start()

    def send(self, ranks: Iterable[int], message: object, to: str = "rank") -> None:
        """Say something to ranks, or to their desks."""
        frames = self._wire.pack(wire.ASK, message)
        for rank in ranks:
            if rank not in self.deaths:
                try:
                    self._socket.send_multipart([f"{to} {rank}".encode(), *frames], copy=len(frames[1]) < 1 << 16)
                except zmq.ZMQError:  # it has just died, and that will be seen
                    continue

    def hear(self, within_s: float) -> list[object]:
        """What ranks said: at once where something is there, else as soon as something happens, or nothing."""
        inbox, self._inbox = self._inbox, []
        wait_s = 0.0 if inbox else max(0.0, min(within_s, POLL_S if self._unwatched() else within_s))
        for fd, _ in self._poller.poll(math.ceil(wait_s * 1e3)):
            if fd in self._watched:
                self._died(self._watched[fd])
            elif fd is self._socket:
                inbox += self._received()
        for rank in self._unwatched():
            if not host.alive(self.pids[rank]):
                self._died(rank)
        return inbox

    def ask(self, ranks: Iterable[int], what: Ask, within_s: float) -> dict[int, object]:
        """What the desks of these ranks answer within that time; other messages wait until they are asked for."""
        wanted, answers = set(ranks) - set(self.deaths), dict[int, object]()
        self.send(wanted, what, to="desk")
        until_s, kept = time.monotonic() + within_s, list[object]()
        while wanted - set(answers) - set(self.deaths) and time.monotonic() < until_s:
            for message in self.hear(until_s - time.monotonic()):
                if isinstance(message, Told):
                    answers |= {message.rank: message.answer} if message.what == what.what else {}
                else:
                    kept.append(message)
        self._inbox += kept
        return answers

    def signal(self, ranks: Iterable[int], sign: signal.Signals) -> None:
        """Send a signal to ranks that live."""
        for rank in ranks:
            if rank not in self.deaths and rank in self.pids:
                try:
                    os.kill(self.pids[rank], sign)
                except ProcessLookupError:
                    continue

    def watch(self, hello: Hello) -> None:
        """A rank is there: look after its process from now on."""
        self.pids[hello.rank] = hello.pid
        watched = host.watch(hello.pid)
        if watched is not None:
            self._watched[watched] = hello.rank
            self._poller.register(watched, zmq.POLLIN)

    def failures(self) -> list[Failure]:
        """The deaths, told as failures."""
        logged = dict(re.findall(r"exitcode: (-?\d+)\) local_rank: (\d+)", self.log()))
        codes = {int(rank): int(code) for code, rank in logged.items()}
        return [
            failure.of_death(r, death.at_s, codes.get(r) if death.code is None else death.code, self.ears.last_words(r))
            for r, death in self.deaths.items()
        ]

    def log(self) -> str:
        """What torchrun said."""
        return os.pread(self._log.fileno(), 1 << 20, 0).decode(errors="replace")

    def close(self) -> None:
        """End every process, remove the folder, leave no descriptor open."""
        if os.getpid() != self._process:  # a fork of the kernel: none of this is its own
            return
        self._closing.set()
        try:
            if self.keeper:
                self._end(self.keeper)
        finally:
            self.ears.close()
            self._socket.close(0)
            self._context.term()
            self._log.close()
            for fd in (*self._watched, *([self._lock] if self._lock >= 0 else [])):
                os.close(fd)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, keeper: subprocess.Popen[bytes]) -> None:
        assert keeper.stdin and keeper.stdout
        keeper.terminate()
        keeper.stdin.close()
        try:
            keeper.wait(host.END_S + 1)
        except subprocess.TimeoutExpired:
            keeper.kill()
            keeper.wait()
        host.end(lambda: host.marked(self.folder))

    def _unwatched(self) -> set[int]:
        return set(self.pids) - set(self._watched.values()) - set(self.deaths)

    def _received(self) -> list[object]:
        received = []
        while True:
            try:
                _, *frames = self._socket.recv_multipart(zmq.NOBLOCK)
                received.append(self._wire.unpack(wire.SAY, frames))
            except zmq.Again:
                return received
            except wire.Refused:
                self.refused += 1

    def _died(self, rank: int) -> None:
        status = host.wait_status(self.pids[rank])
        code = None if status is None else os.waitstatus_to_exitcode(status)
        self.deaths[rank] = Death(time.monotonic(), code)
        for fd in [fd for fd, watched in self._watched.items() if watched == rank]:
            self._poller.unregister(fd)
            del self._watched[fd]
            os.close(fd)

    def _keeper_ended(self) -> None:
        """In the ears' thread: nothing of the group may outlive its keeper, however that ended."""
        assert self.keeper and self.keeper.stdout
        said = os.read(self.keeper.stdout.fileno(), 100).decode().split()
        self.ears.off(self.keeper.stdout.fileno())
        self.ended = f"torchrun ended ({said[1]})" if said else "it was ended from outside"
        if not self._closing.is_set():
            host.end(lambda: host.marked(self.folder))
            shutil.rmtree(self.folder, ignore_errors=True)
        self.ears.wake()
