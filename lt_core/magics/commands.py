"""`%torchrun status`, `restart` and `stop`: a notebook's ranks, and those of its user's other notebooks."""

from __future__ import annotations

import os
import time

from lt_core.comm.group import Status, find, stop_all
from lt_core.magics.held import Held
from lt_core.magics.options import Options


def obey(options: Options, held: Held) -> str:
    """Do what the line asks for; gives what to print."""
    if options.command == "status":
        return status(held)
    if options.command == "restart":
        return restart(held)
    return stop_everywhere(held) if options.everywhere else stop(held)


def status(held: Held) -> str:
    """This notebook's ranks, and those of others."""
    mine = held.group.status() if held.group else None
    others = [told(other) for other in find() if other.kernel != os.getpid()]
    here = f"here: {told(mine)}" if mine and mine.alive else "this notebook holds no ranks"
    return "\n".join([here, *(f"elsewhere: {other}" for other in others)])


def restart(held: Held) -> str:
    """New ranks without variables, whatever the old ones do."""
    group = held.standing()
    group.restart()
    return f"{group.size} new ranks over {group.backend}, without variables"


def stop(held: Held) -> str:
    """End this notebook's ranks."""
    return "stopped" if held.stop() else "this notebook holds no ranks"


def stop_everywhere(held: Held) -> str:
    """End the ranks of all notebooks of this user."""
    here = held.group.status() if held.group else None
    stopped = [f"stopped: {told(here)}"] if held.stop() and here else []
    return "\n".join([*stopped, *(f"stopped: {told(other)}" for other in stop_all())]) or "there were no ranks"


def told(group: Status) -> str:
    """A group in a line."""
    since = time.strftime("%H:%M:%S", time.localtime(group.since_s))
    processes = f", processes {', '.join(map(str, group.pids))}" if group.pids else ""
    return f"{group.ranks}, since {since}{processes}"
