"""Ranks as threads of this process, with an end to everything: for tries that take milliseconds when all is well.

A rank that waits in vain is told so by its communicator. One that runs for ever gets an exception between two of its
own lines; one that not even this stops (it sleeps, or catches everything) is left alone and named.
"""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
import time
import traceback
from collections.abc import Sequence

from lt_core.comm.threads.hub import Hub
from lt_core.comm.threads.ranks import Meeting, Threads
from lt_core.teaching.checks import place
from lt_core.teaching.checks.attempt import Job, Stopped, attempt
from lt_core.teaching.checks.exercise import STILL_RUNNING, Case, Outcome, Run, Trouble

WAIT_S, WHOLE_S, STOP_S = 2.0, 3.0, 1.0  # the longest wait of a rank; of a whole case; how long stopping may take


def run(job: Job, case: Case) -> Run:
    """What came of a case on threads; never longer than a few seconds."""
    outcomes: list[Outcome | None] = [None] * case.size
    hub = Hub(case.size, WAIT_S)
    meeting = Meeting(hub)

    def main(rank: int) -> None:
        with contextlib.suppress(Stopped):  # it may come before the learner's function has begun, or after its end
            outcomes[rank] = done = attempt(Threads(rank, meeting), job, case)
            if done.trouble:
                hub.abort(f"rank {rank} failed: {done.trouble.kind}: {done.trouble.text}")
            else:
                hub.leave(rank)

    ranks = [threading.Thread(target=main, args=(r,), name=f"rank {r}", daemon=True) for r in range(case.size)]
    for rank in ranks:
        rank.start()
    try:
        _join(ranks, WHOLE_S)
    finally:
        seen = _stop(job, ranks, hub)  # also where the learner's stop button ended the join
    ended = [o or Outcome(trouble=seen.get(r)) for r, o in enumerate(outcomes)]
    named = [o._replace(trouble=seen[r]) if r in seen and o.trouble else o for r, o in enumerate(ended)]
    return Run(case, case.given(job.seed), named)


def _join(ranks: Sequence[threading.Thread], within_s: float) -> None:
    until_s = time.monotonic() + within_s
    for rank in ranks:
        rank.join(max(0.0, until_s - time.monotonic()))


def _stop(job: Job, ranks: Sequence[threading.Thread], hub: Hub) -> dict[int, Trouble]:
    """End the ranks that still run, and say of each where it was."""
    running = {r: thread for r, thread in enumerate(ranks) if thread.is_alive()}
    if not running:
        return {}
    frames = sys._current_frames()
    seen = {}
    for r, thread in running.items():
        frame = frames.get(thread.ident or 0)
        at = place.of_frames(traceback.extract_stack(frame), job.fn) if frame else None
        seen[r] = Trouble(r, STILL_RUNNING, f"it had not ended after {WHOLE_S:g} s", at, hang=True)
    hub.abort("stopped: it took too long")
    until_s = time.monotonic() + STOP_S
    while (alive := [t for t in running.values() if t.is_alive()]) and time.monotonic() < until_s:
        for thread in alive:
            _raise_in(thread)
        _join(alive, 0.1)
    for r, thread in running.items():
        if thread.is_alive():
            note = "it cannot be stopped from outside, so a thread is left over: restart the kernel to be rid of it"
            seen[r] = seen[r]._replace(text=f"{seen[r].text}; {note}")
    return seen


def _raise_in(thread: threading.Thread) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Stopped))
