"""Ranks go from phase to phase together: each writes the number of the phase it has come to, and reads the others'.

    rank 0  . . fills A | 1 | reads A, fills B | 2 | reads B, fills A | 3 | ...
    rank 1  fills A . . | 1 | reads A, fills B | 2 | . reads B, fills A . | 3 | ...

Who fills A again in phase 3 has seen that all had come to phase 2, hence were done with A. So two stages are enough,
and one meeting between a write and its reads is all it takes.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, dtype

from lt_core.comm.shared_memory.room import PHASE, SAID, Room
from lt_core.comm.shared_memory.waits import Peers, Wait, fence


class Phases:
    """The phases of a rank's collectives, one collective after the other. Whoever runs one names it in `begin`."""

    def __init__(self, room: Room, peers: Peers) -> None:
        self.room, self.rank, self.size = room, peers.rank, room.size
        self._peers, self._words = peers, room.words
        self._places = [room.word(rank, PHASE) for rank in range(room.size)]
        self._others = [place for rank, place in enumerate(self._places) if rank != peers.rank]
        self._phase = self._half = 0
        self._doing, self._timeout_s = "", 0.0
        self._urgent: Callable[[], bool] = lambda: True

    def begin(self, verb: str, timeout_s: float, urgent: Callable[[], bool]) -> None:
        """What is done from now on, for how long each of its waits may last, and whether somebody waits for it."""
        self._doing, self._timeout_s, self._urgent = verb, timeout_s, urgent

    def meet(self, said: int = 0) -> None:
        """Hold until every rank is here, and has written what it wrote before; `said` is for `heard`."""
        words, phase, wait = self._words, self._phase + 1, None
        self._phase = phase
        words[self.room.word(self.rank, SAID) + phase % 2] = said
        fence()
        words[self._places[self.rank]] = phase
        for place in self._others:
            while words[place] < phase:
                wait = wait or Wait(self._peers, self._doing, self._timeout_s, self.late, self._urgent)
                wait.poll()
        fence()

    def heard(self) -> list[int]:
        """What each rank said at the last meeting; to be asked before the next one."""
        return [self._words[self.room.word(rank, SAID) + self._phase % 2] for rank in range(self.size)]

    def meet_with(self, row: list[int]) -> list[list[int]]:
        """Meet, and say a number to each rank; what each rank said to each."""
        words, parity = self._words, (self._phase + 1) % 2
        for rank, number in enumerate(row):
            words[self.room.row(self.rank, parity) + rank] = number
        self.meet()
        rows = [self.room.row(rank, parity) for rank in range(self.size)]
        return [words[first : first + self.size].tolist() for first in rows]

    def stages(self, kind: dtype) -> list[Tensor]:
        """Every rank's stage for what is copied next, as elements: write your own, meet, read the others'."""
        self._half = 1 - self._half
        return self.room.stages(kind)[self._half]

    def late(self) -> list[int]:
        """Who has not come to our phase."""
        return [rank for rank, place in enumerate(self._places) if self._words[place] < self._phase]
