"""All or none: who waits in torch's own making of a group cannot be freed, so nobody enters it before all have come.

    rank 2  here ... sees all  --> "enter" ............ makes the group
    rank 3  here ... gives up  --> reads "enter" ...... makes the group with it, and then gives up
    rank 3  here ... gives up  --> "leave"              rank 2 sees all, reads "leave", and leaves too

The first word holds, for every rank.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from torch._C._distributed_c10d import Store

from lt_core.base.errors import Aborted, Deadline
from lt_core.comm.meeting import Meeting

LOOK_S = 0.01  # how often who waits for others looks whether they have come, or the group has ended
LEFT = "a rank left before all had come"


@contextmanager
def all_here(
    meeting: Meeting, name: str, rank: int, size: int, timeout_s: float, ended: Callable[[], str]
) -> Iterator[None]:
    """A context that all `size` ranks enter, or none. `ended`: why they need not wait any longer, or nothing.

    Errors: `Deadline` naming who did not come; `Aborted`. An interrupt is raised behind the context if others have
    entered.
    """
    raised: BaseException | None = None
    try:
        _wait(meeting.store(f"{name}.here"), rank, size, timeout_s, ended)
    except BaseException as error:
        raised = error
    if meeting.settle(f"entered.{name}", "leave" if raised else "enter") == "leave":
        raise raised or Aborted(ended() or LEFT)
    yield
    if raised:
        raise raised


def _wait(store: Store, rank: int, size: int, timeout_s: float, ended: Callable[[], str]) -> None:
    everyone, until_s = [f"rank {r}" for r in range(size)], time.monotonic() + timeout_s
    store.set(everyone[rank], "here")
    while not store.check(everyone):
        if reason := ended():
            raise Aborted(reason)
        if time.monotonic() > until_s:
            missing = [r for r, key in enumerate(everyone) if not store.check([key])]
            raise Deadline(f"subset: of {size} ranks {missing} have not come within {timeout_s:g} s")
        time.sleep(LOOK_S)  # a store can wait itself, but in whole seconds, in which nobody hears that the group ended
