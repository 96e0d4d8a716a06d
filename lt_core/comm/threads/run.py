"""Start a function on ranks that are threads, and end with all of them: results by rank, or the first failure."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from lt_core.base.errors import RankError
from lt_core.base.torch_compat import settle
from lt_core.comm import checks
from lt_core.comm.failure import is_consequence, text
from lt_core.comm.threads.hub import Hub
from lt_core.comm.threads.ranks import Meeting, Threads


def run(fn: Callable[..., Any], size: int, args: Sequence[object] = (), timeout_s: float = 60) -> list[Any]:
    """`fn(comm, *args)` on `size` ranks; what they returned, by rank. No wait of theirs lasts longer than `timeout_s`.

    Errors: `RankError` of the rank that failed first, with its own exception as cause; the others are freed at once.
    """
    checks.world_size(size)
    settle()
    hub = Hub(size, timeout_s)
    meeting = Meeting(hub)
    results: list[Any] = [None] * size
    failed: list[tuple[int, BaseException]] = []

    def main(rank: int) -> None:
        try:
            results[rank] = fn(Threads(rank, meeting), *args)
            hub.leave(rank)
        except BaseException as error:  # also SystemExit: it is raised again by whoever called `run`
            failed.append((rank, error))
            hub.abort(f"rank {rank} failed: {type(error).__name__}: {text(error)}")

    ranks = [threading.Thread(target=main, args=(r,), name=f"rank {r}") for r in range(size)]
    _run_all(ranks, hub)
    if failed:
        rank, error = min(failed, key=lambda one: is_consequence(one[1]))  # of equals the first
        details = "".join(traceback.format_exception(error))
        raise RankError(rank, type(error).__name__, text(error), details) from error
    return results


def _run_all(ranks: Sequence[threading.Thread], hub: Hub) -> None:
    try:
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    except BaseException as stop:  # Ctrl-C, the notebook's stop button, or a machine that has no thread left
        hub.abort(f"stopped: {type(stop).__name__}")
        for rank in ranks:
            if rank.is_alive():  # else it has ended, or was never started
                rank.join()
        raise
