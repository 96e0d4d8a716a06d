"""How a group comes up: room, folder, facts for the ranks, torchrun; it stands when every rank has answered."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lt_core.base.cluster import Wire
from lt_core.base.errors import Deadline, UserError
from lt_core.comm import folders, limits
from lt_core.comm.group import found, room
from lt_core.comm.group.cell import Hello, Interrupted, Status
from lt_core.comm.group.members import Members
from lt_core.comm.launch import environment, inside, sweep, torchrun

RANK = Path(__file__).with_name("rank.py")
LOOK_S = 0.1  # how often it is looked for an interrupt, or torchrun's end
STOPPED = "the group was stopped while it started"
FLIGHT = {"TORCH_FR_BUFFER_SIZE": "64"}  # torch's flight recorder: the last collectives of each rank


class Plan(NamedTuple):
    """What a group is asked to be."""

    size: int
    backend: str
    owner: str
    shape: Wire | None
    alone: bool


def start(plan: Plan, timeout_s: float, interrupted: Callable[[], bool], stopped: Callable[[], bool]) -> Members:
    """The processes of a group, ready: every rank has answered, and one all-reduce has come out right.

    Errors: `UserError` where there is no room or another notebook holds ranks; `Deadline` naming who did not come;
    `Interrupted`; `RuntimeError` where it was stopped, or with torchrun's own words where that ended.
    """
    if inside():
        raise UserError("a rank cannot start a group", attempt="comm.subset(ranks)")
    try:
        os.getcwd()
    except FileNotFoundError:
        what = "ranks begin in the folder of their notebook, which is gone"
        raise UserError(what, attempt="os.chdir('/')") from None
    folders.sweep()
    sweep(plan.backend)
    room.check(plan.size, limits.free_bytes())
    members = _members(plan.size)
    try:
        status = _announced(plan, members)
        if plan.alone:
            refuse_second(status)
        _leave_facts(plan, members, timeout_s)
        members.tree.start(torchrun(members.folder, plan.size, RANK), environment(plan.size) | FLIGHT)
        members.ears.start()
        status = status._replace(keeper=members.tree.keeper)
        found.write(status)
        _meet(members, timeout_s, interrupted, stopped)
        found.write(status._replace(pids=tuple(members.pids[rank] for rank in range(plan.size))))
    except BaseException:
        members.close()
        sweep(plan.backend)
        raise
    return members


def refuse_second(mine: Status) -> None:
    """Errors: `UserError` naming the notebook that holds ranks already. Of two at once, the younger one steps back."""
    for other in found.find():
        if other.size and other.kernel != mine.kernel and (other.since_s, other.folder) < (mine.since_s, mine.folder):
            raise UserError(
                f"{other.owner} holds {other.size} ranks already",
                f"a second group, for {mine.owner}",
                "one group a user",
                "%torchrun stop --all, which ends them",
            )


def _members(size: int) -> Members:
    """In a new folder, which goes again where they cannot be made: no descriptors left, a disk just filled."""
    folder = folders.make()
    try:
        return Members(folder, size)
    except BaseException:
        with folder:
            raise


def _announced(plan: Plan, members: Members) -> Status:
    status = Status(plan.owner, plan.size, plan.backend, time.time(), os.getpid(), 0, str(members.folder))
    found.write(status)
    return status


def _leave_facts(plan: Plan, members: Members, timeout_s: float) -> None:
    shape = plan.shape and (plan.shape.name, plan.shape.latency_s, plan.shape.bytes_per_s)
    facts = {
        "path": [os.path.abspath(place) for place in sys.path],
        "backend": plan.backend,
        "size": plan.size,
        "shape": shape,
        "nonce": members.ears.nonce,
        "timeout_s": timeout_s,
    }
    (members.folder / "job.json").write_text(json.dumps(facts))


def _meet(members: Members, timeout_s: float, interrupted: Callable[[], bool], stopped: Callable[[], bool]) -> None:
    until_s = time.monotonic() + timeout_s
    while len(members.pids) < members.size:
        for message in members.hear(min(LOOK_S, until_s - time.monotonic())):
            if isinstance(message, Hello):
                members.welcome(message)
        said = "".join(f"\n  {line.text}" for line in members.ears.take() if line.stream == "err")
        if interrupted():
            raise Interrupted("interrupted while the group started; it was ended")
        if stopped():
            raise RuntimeError(STOPPED)
        if members.tree.ended or members.deaths:
            why = members.tree.ended or "a rank died"
            raise RuntimeError(f"the group did not start: {why}{said}\n{members.tree.log()[-2000:]}")
        if time.monotonic() > until_s:
            missing = sorted(set(range(members.size)) - set(members.pids))
            raise Deadline(f"ranks {missing} were not ready after {timeout_s:g} s{said}\n{members.tree.log()[-2000:]}")
