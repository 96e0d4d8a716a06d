"""A rank's lane as its workers run it: items, each one action or one exchange, and what must be over before each.

lane      F0   SEND_F0>1   COPY_B0<1   B0          items   0        1          2        3
streams   compute   out        in      compute     waits            0                   0 2
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from lt_core.base.action import Action
from lt_core.base.errors import ScheduleError, UserError
from lt_core.base.schedule import Schedule

FREE = "free"


class Item(NamedTuple):
    """What is issued at once, by the worker of which stream, after which items (their numbers).

    An exchange that sends is the `out` worker's; it keeps the order of both its streams, so that a receive behind it
    does not overtake it on the link.
    """

    actions: tuple[Action, ...]
    worker: str
    waits: tuple[int, ...]

    def __str__(self) -> str:
        return " + ".join(map(str, self.actions))


def items(schedule: Schedule, rank: int) -> list[Item]:
    """The lane of `rank`, in order. Errors: a rank without a lane, actions or needs of another rank, a circle."""
    _check_own(schedule, rank)
    runs = schedule.exchanges(rank)
    number = {a: k for k, run in enumerate(runs) for a in run}
    before: dict[str, int] = {}
    made: list[Item] = []
    for k, run in enumerate(runs):
        streams = {a.op.stream for a in run} - {FREE}
        waits = {number[n] for n in _needs(schedule, run[0], number)} | {before[s] for s in streams if s in before}
        before.update(dict.fromkeys(streams, k))
        made.append(Item(run, "out" if "out" in streams else run[0].op.stream, tuple(sorted(waits))))
    if len(number) < len(schedule.lanes[rank]) or any(item.waits[-1:] >= (k,) for k, item in enumerate(made)):
        schedule.check()  # twins, or a wait for what stands later: allowed, unless it closes a circle
    return made


def is_chain(made: Sequence[Item]) -> bool:
    """Whether nothing could ever run beside anything else, so that one worker is enough."""
    ordered = [k for k, item in enumerate(made) if item.worker != FREE]
    return all(before in made[k].waits for before, k in pairwise(ordered))


def _check_own(schedule: Schedule, rank: int) -> None:
    if not 0 <= rank < schedule.size:
        raise UserError(f"{schedule.name} has no rank {rank}", expected=f"0 to {schedule.size - 1}")
    for a in schedule.lanes[rank]:
        if a.rank != rank:
            raise ScheduleError(
                f"{schedule.name}: lane {rank} holds {a} of rank {a.rank}", attempt="lane r is rank r's"
            )


def _needs(schedule: Schedule, a: Action, number: dict[Action, int]) -> tuple[Action, ...]:
    needs = schedule.needs.get(a, ())
    for n in needs:
        if n.rank != a.rank:
            what = f"{schedule.name}: {a} of rank {a.rank} needs {n} of rank {n.rank}"
            raise ScheduleError(what, attempt="lower it to a message first, a SEND there and a COPY here")
        if n not in number:
            schedule.check()
    return needs
