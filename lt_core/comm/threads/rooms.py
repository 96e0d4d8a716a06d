"""Collectives between threads: the ranks of a hub meet in room after room, and whoever comes last runs it for all.

So all ranks get the same bits, and nothing that was begun needs a thread of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch

from lt_core.base.errors import Mismatch
from lt_core.comm.threads.hub import Begun, Hub


class _Room:
    """One collective while its ranks arrive: what each began, called, and brought."""

    def __init__(self) -> None:
        self.begun: dict[int, Begun] = {}
        self.calls: dict[int, str] = {}
        self.values: dict[int, Any] = {}


class Rooms:
    """The collectives of one hub, numbered in each rank's own order."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._rooms: dict[int, _Room] = defaultdict(_Room)
        self._entered = [0] * hub.size

    def meet(self, rank: int, call: str, value: object, act: Callable[[Sequence[Any]], object]) -> Begun:
        """Bring `value` to this rank's next collective; the last to come runs `act` on the values of all, by rank."""
        with self._hub.lock:
            self._hub.check()
            number = self._entered[rank]
            self._entered[rank] += 1
            room = self._rooms[number]
            missing = (r for r in range(self._hub.size) if r != rank and r not in room.begun)
            begun = Begun(self._hub, rank, missing, 1, lambda: call)
            for other in room.begun.values():
                other.missing.remove(rank)
            room.begun[rank], room.calls[rank], room.values[rank] = begun, call, value
            complete = len(room.begun) == self._hub.size
            if complete:
                del self._rooms[number]
        if complete:
            error = self._run(number, room, act)
            self._hub.over(*((b, error) for b in room.begun.values()))
        return begun

    def _run(self, number: int, room: _Room, act: Callable[[Sequence[Any]], object]) -> Exception | None:
        try:
            _agree(number, room.calls)
            with (
                torch.inference_mode()
            ):  # so that tensors of either kind can be written, whatever mode their rank is in
                result = act([room.values[r] for r in range(self._hub.size)])
        except Exception as error:  # every rank of the room raises it
            return error
        for begun in room.begun.values():
            begun.result = result
        return None


def _agree(number: int, calls: dict[int, str]) -> None:
    first = calls[0]
    other = next((r for r in sorted(calls) if calls[r] != first), 0)
    if other:
        what = f"rank 0 called {first}, rank {other} called {calls[other]}, as collective {number} of their group"
        raise Mismatch(what, attempt="make the same calls in the same order on every rank")
