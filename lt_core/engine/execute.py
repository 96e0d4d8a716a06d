"""Run one rank's lane of a schedule for real: a worker a stream, in lane order, as early as needs allow.

compute   F0 ------ F1 ------ B0 ...        a worker is a thread (on a GPU with a CUDA stream of its own), unless
out            SEND_F0 -- SEND_F1 ...       nothing could run beside anything else: then the caller does it all,
in        COPY_B0 ------------ ...          and no thread is made
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Protocol

from lt_core.base.action import Action
from lt_core.base.costs import sizes
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Trace
from lt_core.base.work import Work
from lt_core.engine.board import Board
from lt_core.engine.lane import is_chain, items
from lt_core.engine.streams import Streams, streams_of

GRACE_S = 5.0  # what workers are given to end in once they were aborted


class Machine(Protocol):
    """What a technique supplies: how to do an action.

    It may also have `nbytes(action)`, which its spans then carry, and on a GPU it has `device`: each worker then gets
    a CUDA stream of its own there.
    """

    def run(self, actions: Sequence[Action]) -> Work | None:
        """Do one action, or one exchange, which sends what stood there before anything arrives. None: over on return
        (on a GPU: queued on the current stream)."""
        ...

    def abort(self, reason: str) -> None:
        """Whatever `run` is in, and every Work it gave, raises at once."""
        ...


def execute(schedule: Schedule, rank: int, machine: Machine, trace: Trace, deadline_s: float = 60.0) -> None:
    """Run the lane of `rank`: when it returns all is over, and `trace` has a span for each action, on the host's clock.

    An action is issued when its needs were issued, after `wait()` on their Works. Errors: `ScheduleError` for a need
    on another rank; `Deadline` where an action waits for `deadline_s` in which the rank issues nothing; the first
    error of the machine, after `machine.abort`. `trace` then has what was over by that time.
    """
    made = items(schedule, rank)
    workers = ["rank"] if is_chain(made) else list(dict.fromkeys(item.worker for item in made))
    board = Board(made, workers, deadline_s, lambda reason: machine.abort(f"rank {rank}: {reason}"))
    streams = streams_of(getattr(machine, "device", None))
    try:
        if len(workers) == 1:
            _work(board, workers[0], machine, streams, nullcontext())
        else:
            _side_by_side(board, workers, machine, streams)
    finally:
        trace.spans += board.spans(sizes(machine))
    if board.error:
        raise board.error


def _work(board: Board, worker: str, machine: Machine, streams: Streams, place: AbstractContextManager[None]) -> None:
    """All items of one worker, then the end of what they began."""
    try:
        with place:
            while (k := board.take(worker)) is not None:
                board.hold(worker, board.items[k].waits)
                board.put(worker, k, streams.issue(partial(machine.run, board.items[k].actions)))
            board.finish(worker)
    except BaseException as error:
        board.fail(error)
    finally:
        board.leave()


def _side_by_side(board: Board, workers: Sequence[str], machine: Machine, streams: Streams) -> None:
    threads = [
        threading.Thread(target=_work, args=(board, w, machine, streams, streams.worker()), name=w, daemon=True)
        for w in workers
    ]
    try:
        for thread in threads:
            thread.start()
        board.watch()
    except BaseException as error:  # an interrupt, or a thread that could not be made
        board.fail(error)
    for thread in threads:
        if thread.ident is not None:
            thread.join(GRACE_S if board.error else None)
        if thread.is_alive() and board.error:
            board.error.add_note(f"{thread.name} did not end in the {GRACE_S:g} s after abort")
