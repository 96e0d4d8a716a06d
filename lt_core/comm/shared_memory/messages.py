"""The messages of a rank: on each link one after the other, on all links at once, piece by piece as there is room.

Whoever waits for a message moves all of them on, so that no order of sends and receives can block.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from lt_core.base.errors import Mismatch
from lt_core.comm.comm import Ends
from lt_core.comm.shared_memory.links import Link
from lt_core.comm.shared_memory.room import Room
from lt_core.comm.shared_memory.waits import Wait


class End:
    """One end of a message: its bytes, of which `done` have moved; when the last did."""

    def __init__(self, x: Tensor, peer: int) -> None:
        self.data, self.peer, self.done = x.detach().view(-1).view(torch.uint8), peer, 0
        self.end_s = time.perf_counter()

    @property
    def over(self) -> bool:
        """Whether all of it has moved."""
        return self.done == self.data.numel()


class Messages:
    """What a rank sends and receives. `step` moves what can be moved; any thread may call it."""

    def __init__(self, room: Room, rank: int) -> None:
        others = [peer for peer in range(room.size) if peer != rank]
        self._rank, self._moving = rank, threading.Lock()
        self._out = {peer: Link(room, rank, peer) for peer in others}
        self._in = {peer: Link(room, peer, rank) for peer in others}
        self._sent: dict[int, deque[End]] = {peer: deque() for peer in others}
        self._wanted: dict[int, deque[End]] = {peer: deque() for peer in others}

    def add(self, sends: Ends, receives: Ends) -> list[End]:
        """Begin an exchange: its ends, of which empty ones are over."""
        with torch.inference_mode():
            out, coming = [End(x, peer) for x, peer in sends], [End(x, peer) for x, peer in receives]
        with self._moving:
            for ends, queues in ((out, self._sent), (coming, self._wanted)):
                for end in ends:
                    if not end.over:
                        queues[end.peer].append(end)
        return [*out, *coming]

    def step(self) -> bool:
        """Move every message on that can move; whether one did. Errors: `Mismatch`, where one does not fit."""
        idle = not (any(self._sent.values()) or any(self._wanted.values()))
        if idle or not self._moving.acquire(blocking=False):  # another thread is at it
            return False
        try:
            with torch.inference_mode():
                sent = [self._send(peer, queue) for peer, queue in self._sent.items() if queue]
                return any([*sent, *(self._receive(peer, queue) for peer, queue in self._wanted.items() if queue)])
        finally:
            self._moving.release()

    def forget(self) -> None:
        """Move nothing on any more: the buffers of what was begun are their owners' again."""
        with self._moving:
            for queue in (*self._sent.values(), *self._wanted.values()):
                queue.clear()

    def _send(self, peer: int, queue: deque[End]) -> bool:
        moved = False
        while queue and (nbytes := self._out[peer].put(queue[0].data, queue[0].done)):
            moved = True
            _advance(queue, nbytes)
        return moved

    def _receive(self, peer: int, queue: deque[End]) -> bool:
        moved, link = False, self._in[peer]
        while queue and (nbytes := link.coming()):
            end = queue[0]
            if nbytes != end.data.numel():
                what = f"a message from rank {peer} to rank {self._rank} does not fit its buffer"
                raise Mismatch(what, f"{nbytes} bytes sent, room for {end.data.numel()}", "one size and dtype")
            moved = True
            _advance(queue, link.take(end.data, end.done))
        return moved


class Moving:
    """The Work of an exchange. `waiting(late)`: a new wait; `fail(error)`: ends the group.

    As far as the links have room (4 pieces each) it moves when it is begun; what is larger moves on only while some
    thread of this rank waits in a verb. So it does not overlap with what the rank computes meanwhile.
    """

    def __init__(
        self,
        messages: Messages,
        ends: Sequence[End],
        waiting: Callable[[Callable[[], list[int]]], Wait],
        fail: Callable[[BaseException], None],
    ) -> None:
        self._messages, self._ends, self._waiting, self._fail = messages, list(ends), waiting, fail
        self._start_s = self._end_s = time.perf_counter()
        self._move(messages.step)

    def _move(self, move: Callable[[], object]) -> object:
        try:
            return move()
        except BaseException as error:
            self._fail(error)
            raise

    def wait(self) -> None:
        """Hold until all of it has moved. Errors: `Mismatch`, `Aborted`, `Deadline`."""
        wait = None
        while self._open():
            wait = wait or self._waiting(lambda: sorted({end.peer for end in self._open()}))
            if not self._move(self._messages.step):
                self._move(wait.poll)
        self._end_s = max([self._end_s, *(end.end_s for end in self._ends)])
        self._ends = []

    def span(self) -> tuple[float, float]:
        """(start, end) in seconds of `time.perf_counter`, once waited for."""
        return self._start_s, self._end_s

    def _open(self) -> list[End]:
        return [end for end in self._ends if not end.over]


def _advance(queue: deque[End], nbytes: int) -> None:
    end = queue[0]
    end.done += nbytes
    if end.over:
        end.end_s = time.perf_counter()
        queue.popleft()
