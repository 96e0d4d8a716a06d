"""A rank whose group shares memory: every verb is checked, counted, and done by the parts of this folder."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple
from zlib import crc32

import torch
from torch import Tensor

from lt_core.base.errors import Aborted, Mismatch, UserError
from lt_core.base.traffic import Traffic
from lt_core.base.work import Work
from lt_core.comm import calls, checks, host
from lt_core.comm.comm import Comm, Ends
from lt_core.comm.outside import Outside
from lt_core.comm.shared_memory.collectives import Collectives
from lt_core.comm.shared_memory.ending import Ending
from lt_core.comm.shared_memory.growth import Growth
from lt_core.comm.shared_memory.lane import Begun, Lane
from lt_core.comm.shared_memory.messages import Messages, Moving
from lt_core.comm.shared_memory.phases import Phases
from lt_core.comm.shared_memory.prepared import prepared
from lt_core.comm.shared_memory.room import PID, Room, room_bytes
from lt_core.comm.shared_memory.segment import notes, say, share
from lt_core.comm.shared_memory.slots import Slots, slot_stride
from lt_core.comm.shared_memory.waits import Peers, Wait, late_text
from lt_core.comm.verbs import Verbs

LOOKS = 100  # before a rank gives way, where each has a core of its own


class Family(NamedTuple):
    """What a communicator and its subsets have in common: whether ranks share cores, how far stages grow, and all that
    a wait moves on.
    """

    crowded: bool
    largest_bytes: int
    messages: list[Messages]

    def step(self) -> bool:
        """Move the messages of a group on that can be moved; whether there was one."""
        return any(messages.step() for messages in self.messages)


class SharedMemory(Verbs):
    """A communicator over a room that its ranks share; sums run in the order of ranks.

    beneath: the communicator that carried its beginnings, and carries a subset that finds no room; None in a subset.
    """

    backend = "shared_memory"

    def __init__(self, room: Room, rank: int, timeout_s: float, family: Family, beneath: Comm | None) -> None:
        self.rank, self.size, self.timeout_s = rank, room.size, timeout_s
        self.device, self.traffic = torch.device("cpu"), Traffic()
        self._family, self._beneath, self._ending = family, beneath, Ending(room, rank)
        self._counting = threading.Lock()
        self._subsets: dict[tuple[int, ...], SharedMemory] = {}
        self._slots, self._lane, self._messages = Slots(rank), Lane(), Messages(room, rank)
        family.messages.append(self._messages)
        room.words[room.word(rank, PID)] = os.getpid()
        looks, unknown = 0 if family.crowded else LOOKS, [(0, "")] * room.size
        self._peers = Peers(rank, looks, self._ending.reason, family.step, unknown)
        self._phases = Phases(room, self._peers)
        self._collectives = Collectives(self._phases, self._slots, Growth(self._phases, family.largest_bytes))
        self.barrier()  # all have said who they are
        pids = [room.words[room.word(r, PID)] for r in range(room.size)]
        self._peers.lives[:] = [(pid, host.life(pid)) for pid in pids]

    @property
    def ended(self) -> str:
        """Why it was aborted, here or by a peer; empty while it lives."""
        return self._ending.reason()

    def call(self, verb: str, *args: Any) -> None:
        """The verb of that name, until it is over."""
        if verb == "exchange":
            self._exchange(*args).wait()
            return
        run = self._run(verb, args)
        if not self._lane.now(partial(run, self.timeout_s, lambda: True)):
            self._begun(verb, run).wait()

    def start(self, verb: str, *args: Any) -> Work:
        """The verb of that name, begun."""
        calls.startable(verb)
        return self._exchange(*args) if verb == "exchange" else self._begun(verb, self._run(verb, args))

    def subset(self, ranks: Sequence[int]) -> Comm:
        """A communicator of some ranks, in the order given; the same one again unless it has ended meanwhile."""
        chosen = checks.subset(self, ranks)
        known = self._subsets.get(chosen)
        told = notes(self, f"{crc32(repr(chosen).encode())} {'lives' if known and not known.ended else ''}")
        if others := [r for r, text in enumerate(told) if text.split()[0] != told[self.rank].split()[0]]:
            what = f"rank {self.rank} asks for a group of ranks {list(chosen)}"
            raise Mismatch(what, f"rank {others[0]} asks for another", "the same group, asked for by every rank")
        if all(told[r].endswith("lives") for r in chosen):
            return known or Outside(self, chosen)
        if known:  # it has ended here or elsewhere, and nothing of it is to be moved on
            known.abort(known.ended or "made anew")
        stage_bytes = self._phases.room.stage_bytes
        memory, why = share(self, room_bytes(len(chosen), stage_bytes), chosen)
        if why:
            return self._elsewhere(chosen, why)
        if memory is None:
            return Outside(self, chosen)
        room = Room(memory, len(chosen), stage_bytes)
        made = SharedMemory(room, chosen.index(self.rank), self.timeout_s, self._family, None)
        self._subsets[chosen] = made
        return made

    def allocate(self, elements: int, dtype: torch.dtype) -> Tensor:
        """Zeros (elements,) in our slot of new memory; where there is no room for it, anywhere."""
        if elements:
            memory, why = share(self, self.size * slot_stride(elements * dtype.itemsize), range(self.size))
            if memory:
                return self._slots.add(memory, self.size, elements, dtype)
            say(self, f"{elements} elements will be copied: {why}")
        return torch.zeros(elements, dtype=dtype)

    def free(self, x: Tensor) -> None:
        """Forget what `allocate` gave."""
        self._slots.free(x)

    def abort(self, reason: str) -> None:
        """End this communicator and its subsets: each verb raises `Aborted(reason)`, here and on its peers."""
        if self._ending.tell(reason) and self._beneath:
            self._beneath.abort(reason)
        self._messages.forget()
        with contextlib.suppress(ValueError):  # it was aborted before
            self._family.messages.remove(self._messages)
        for subset in self._subsets.values():
            subset.abort(reason)

    def _exchange(self, sends: Ends, receives: Ends) -> Work:
        checks.exchange(self, sends, receives)
        self._check_open()
        with self._counting:
            for x, peer in sends:
                if x.numel():
                    self.traffic.counted.add(peer, x.nbytes)
        return Moving(self._messages, self._messages.add(sends, receives), self._waiting, self._broken)

    def _waiting(self, late: Callable[[], list[int]]) -> Wait:
        return Wait(self._peers, "exchange", self.timeout_s, late)

    def _run(self, verb: str, args: Sequence[Any]) -> Callable[[float, Callable[[], bool]], None]:
        """What does the verb, told how long each of its waits may last, and what says whether somebody needs it now."""
        self._check_open()
        act, given = getattr(self._collectives, verb), prepared(self, verb, args, self._counting)

        def run(timeout_s: float, urgent: Callable[[], bool]) -> None:
            try:
                self._check_open()
                self._phases.begin(verb, timeout_s, urgent)
                if given is not None:
                    with torch.inference_mode():
                        act(*given)
            except BaseException as error:
                self._broken(error)
                raise

        return run

    def _begun(self, verb: str, run: Callable[[float, Callable[[], bool]], None]) -> Begun:
        def late() -> str:
            return late_text(self._peers, verb, self.timeout_s, self._phases.late())

        begun = Begun(lambda: run(float("inf"), lambda: begun.awaited), self.timeout_s, self._broken, late)
        return self._lane.later(begun)

    def _broken(self, error: BaseException) -> None:
        """End the group, whose ranks are not in one place any more."""
        self.abort(str(error) or type(error).__name__)

    def _check_open(self) -> None:
        if reason := self.ended:
            raise Aborted(reason)

    def _elsewhere(self, chosen: tuple[int, ...], why: str) -> Comm:
        """A subset for which there is no room."""
        if self._beneath is None:
            raise UserError(f"no group of ranks {list(chosen)}", why, attempt="backend='gloo'")
        say(self, f"ranks {list(chosen)} talk over {self._beneath.backend}: {why}")
        return self._beneath.subset(chosen)
