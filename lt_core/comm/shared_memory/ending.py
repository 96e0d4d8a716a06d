"""How a group ends: whoever ends it writes why, and then that it did; everybody looks while they wait."""

from __future__ import annotations

from lt_core.comm.shared_memory.room import ENDED, Room
from lt_core.comm.shared_memory.waits import fence


class Ending:
    """The end of a group, as one of its ranks sees and tells it."""

    def __init__(self, room: Room, rank: int) -> None:
        self._room, self._rank, self._told = room, rank, ""
        self._place = room.word(0, ENDED)

    def reason(self) -> str:
        """Why it was ended, here or by a peer; empty while it lives."""
        teller = self._room.words[self._place]
        return self._told or (self._room.text(teller - 1) if teller else "")

    def tell(self, reason: str) -> bool:
        """End it; whether this rank had not done so before. The first reason is the one that peers hear."""
        if self._told:
            return False
        self._told = reason or "aborted"
        if not self._room.words[self._place]:
            self._room.set_text(self._rank, self._told)
            fence()
            self._room.words[self._place] = self._rank + 1
        return True
