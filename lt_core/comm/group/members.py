"""The ranks of one start as the kernel sees them: who lives, who says what.

Each has two lines to the kernel: its own, on which jobs and replies go, and its desk's, which is always answered.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterable
from contextlib import ExitStack
from typing import NamedTuple

import zmq

from lt_core.comm import failure, host
from lt_core.comm.failure import Failure
from lt_core.comm.folders import Folder
from lt_core.comm.group import wire
from lt_core.comm.group.cell import Ask, Hello, Told
from lt_core.comm.group.ears import Ears
from lt_core.comm.group.tree import Tree

COPIED_BYTES = 1 << 16  # larger messages are sent from where they lie
POLLIN = int(zmq.POLLIN)  # an enum's member costs more to compare than a message to receive
POLL_S = 0.1  # how often ranks are looked after where the system does not tell that one has ended


class Death(NamedTuple):
    """When a rank's process ended, and how: minus a signal's number, or its exit code; None while nobody knows."""

    at_s: float
    code: int | None


class Members:
    """A group's ranks, with their wire, their pipes and the tree of their processes; `close` ends all of it."""

    def __init__(self, folder: Folder, size: int) -> None:
        self.folder, self.size = folder.path, size
        self.pids: dict[int, int] = {}
        self.deaths: dict[int, Death] = {}
        self.refused = 0  # messages with a wrong key
        self._process = os.getpid()
        self._wire = wire.Wire(wire.new_key(self.folder))
        with ExitStack() as opened:  # where no descriptors are left, those that were got are given back
            log = opened.enter_context(open(self.folder / "torchrun.log", "w+b"))
            self.ears = Ears(self.folder, size)
            opened.callback(self.ears.close)
            self._socket = wire.bound(self.folder, opened)
            self.tree = Tree(folder, self.ears, log)
            self._opened = opened.pop_all()
        self._quick, self._poller = zmq.Poller(), zmq.Poller()  # of what is said; of what is printed, too
        for fd in (self._socket, self.ears.woken):
            self._on(fd)
        self._poller.register(self.ears.pipes, zmq.POLLIN)
        self._watched: dict[int, int] = {}
        self._inbox: list[object] = []

    def welcome(self, hello: Hello) -> None:
        """A rank is there: look after its process from now on."""
        self.pids[hello.rank] = hello.pid
        watched = host.watch(hello.pid)
        if watched is not None:
            self._watched[watched] = hello.rank
            self._on(watched)

    def send(self, ranks: Iterable[int], message: object, to: str = "rank") -> None:
        """Say something to ranks, or to their desks."""
        data = self._wire.pack(wire.ASK, message)
        for rank in ranks:
            if rank not in self.deaths:
                try:
                    self._socket.send(f"{to} {rank}".encode(), zmq.SNDMORE)
                    self._socket.send(data, 0, len(data) < COPIED_BYTES)
                except zmq.ZMQError:  # it has just died, and that will be seen
                    continue

    def hear(self, within_s: float, printed: bool = True) -> list[object]:
        """What ranks said: at once where something is there, else as soon as something happens, or nothing.

        Without `printed` it is no event that ranks print.
        """
        inbox, self._inbox = self._inbox, []
        poller, unwatched = self._poller if printed else self._quick, len(self.pids) > len(self._watched)
        wait_s = 0.0 if inbox else max(0.0, min(within_s, POLL_S if unwatched else within_s))
        for fd, _ in poller.poll(math.ceil(wait_s * 1e3)):
            if fd is self._socket:
                inbox += self._received()
            elif fd in self._watched:
                self._died(self._watched[fd])
            elif fd == self.ears.pipes:
                self.ears.read()
            else:
                self.ears.awake()
        for rank in self._unwatched() if unwatched else ():
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

    def failures(self) -> list[Failure]:
        """The deaths, told as failures."""
        if not self.deaths:
            return []
        codes = failure.exit_codes(self.tree.log())
        return [
            failure.of_death(r, death.at_s, codes.get(r) if death.code is None else death.code, self.ears.last_words(r))
            for r, death in self.deaths.items()
        ]

    def end(self) -> None:
        """End every process; any thread may call it."""
        if os.getpid() == self._process:  # else a fork of the kernel: none of this is its own
            self.tree.end()

    def close(self) -> None:
        """End every process, remove the folder, leave no descriptor open."""
        if os.getpid() != self._process:
            return
        try:
            self.end()
        finally:
            self._opened.close()
            for fd in self._watched:
                os.close(fd)
            self.tree.close()

    def _on(self, what: zmq.Socket[bytes] | int) -> None:
        self._quick.register(what, zmq.POLLIN)
        self._poller.register(what, zmq.POLLIN)

    def _unwatched(self) -> set[int]:
        return set(self.pids) - set(self._watched.values()) - set(self.deaths)

    def _received(self) -> list[object]:
        received = []
        while int(self._socket.get(zmq.EVENTS)) & POLLIN:
            try:
                received.append(self._wire.unpack(wire.SAY, self._message()))
            except wire.Refused:
                self.refused += 1
        return received

    def _message(self) -> bytes:
        """The last part of what came: in front of it stands who sent it, and whatever a stranger may have added."""
        part = self._socket.recv(copy=False)
        while part.more:
            part = self._socket.recv(copy=False)
        data: bytes = part.bytes
        return data

    def _died(self, rank: int) -> None:
        status = host.wait_status(self.pids[rank])
        code = None if status is None else os.waitstatus_to_exitcode(status)
        self.deaths[rank] = Death(time.monotonic(), code)
        for fd in [fd for fd, watched in self._watched.items() if watched == rank]:
            self._poller.unregister(fd)
            self._quick.unregister(fd)
            del self._watched[fd]
            os.close(fd)
