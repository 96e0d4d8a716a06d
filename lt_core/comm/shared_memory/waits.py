"""Waiting for what another rank writes in shared memory, which rings no bell: look again, give way, then sleep.

look ...... some microseconds, where each rank has a core of its own
give way .. a millisecond: whoever runs here next may be the one we wait for
sleep ..... longer and longer, up to a millisecond; now and then look whether those we wait for are alive

Beside a backward, where nobody waits for the collective yet, a look takes the core from who computes: sleep long.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from lt_core.base.errors import Aborted, Deadline
from lt_core.comm import host

YIELD_S, SHORT_SLEEP_S, LONG_SLEEP_S, LOOK_S = 1e-3, 2e-4, 1e-3, 0.05
IN_ORDER = platform.machine().lower() in ("x86_64", "amd64", "i686", "i386")
_LOCK = threading.Lock()


def fence() -> None:
    """What this rank wrote is seen before what it writes next; what it reads next is as new as what it read.

    x86 keeps that order by itself. Elsewhere a lock that is released and taken again does it: a release follows all
    before it, a later acquire precedes all behind it, and a release and an acquire of one lock keep their order.
    """
    if not IN_ORDER:
        for _ in range(2):
            with _LOCK:
                pass


class Peers(NamedTuple):
    """What a wait has to know of the group: how often to look, why it was ended, who is alive."""

    rank: int
    looks: int
    ended: Callable[[], str]
    idle: Callable[[], bool]  # what to do meanwhile; whether it did something
    lives: list[tuple[int, str]]  # each rank's process, and what tells it from a later one of that number


class Wait:
    """One wait of a rank. doing: the verb; late: for whom it waits, as ranks; urgent: whether somebody needs it now."""

    def __init__(
        self,
        peers: Peers,
        doing: str,
        timeout_s: float,
        late: Callable[[], list[int]],
        urgent: Callable[[], bool] = lambda: True,
    ) -> None:
        self._peers, self._doing, self._timeout_s, self._late, self._urgent = peers, doing, timeout_s, late, urgent
        self._looks, self._yield_s = peers.looks, YIELD_S if peers.looks else 0.0
        self._start_s, self._look_s, self._sleep_s = 0.0, LOOK_S, 2e-5

    def poll(self) -> None:
        """Let time pass. Errors: `Aborted`, where the group was ended or a rank died; `Deadline`."""
        if self._looks > 0:
            self._looks -= 1
            return
        now_s = time.perf_counter()
        self._start_s = self._start_s or now_s
        passed_s = now_s - self._start_s
        if reason := self._peers.ended():
            raise Aborted(reason)
        if not threading.main_thread().is_alive():
            raise Aborted(f"rank {self._peers.rank} left while its {self._doing} was not over")
        if passed_s > self._look_s:
            self._look_s += LOOK_S
            self._check_alive()
        if passed_s > self._timeout_s:
            raise Deadline(late_text(self._peers, self._doing, self._timeout_s, self._late()))
        if self._peers.idle():
            return
        urgent = self._urgent()
        if urgent and passed_s < self._yield_s:
            os.sched_yield()
            return
        time.sleep(self._sleep_s if urgent else max(SHORT_SLEEP_S, self._sleep_s))
        self._sleep_s = min(SHORT_SLEEP_S if urgent and passed_s < LOOK_S else LONG_SLEEP_S, 1.5 * self._sleep_s)

    def _check_alive(self) -> None:
        for rank in self._late():
            pid, life = self._peers.lives[rank]
            if life and host.life(pid) != life:
                what = f"rank {self._peers.rank} lost rank {rank} in {self._doing}: its process {pid} has ended"
                raise Aborted(what)


def late_text(peers: Peers, doing: str, timeout_s: float, late: list[int]) -> str:
    """That a wait was too long, and for whom."""
    who = f"of {len(peers.lives)} ranks {late} have not come" if late else "all ranks are there"
    return f"rank {peers.rank} waited {timeout_s:g} s in {doing}: {who}"
