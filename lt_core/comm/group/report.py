"""Where every rank is, from three sources that do not depend on each other nor on the ranks' good will.

its page       the collective it waits in, read without asking it
its stack      written by faulthandler on a signal, even while C code holds the interpreter
its record     torch's own of the last collectives, for those that went past `comm`; its control thread tells
"""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from lt_core.comm.group.cell import Ask, Cell, ranks_text
from lt_core.comm.group.members import Members
from lt_core.comm.group.pages import Watched
from lt_core.comm.group.source import call_at

ANSWER_S = 0.1
FRAME = re.compile(r'File "(.*)", line (\d+) in (.*)')


class Spot(NamedTuple):
    """Where a rank's Python stands: the line of the cell, and what is called there."""

    line: int
    call: str

    def __str__(self) -> str:
        return f"{self.call} at line {self.line}" if self.line else self.call


def report(members: Members, pages: Watched, cell: Cell, ranks: Sequence[int], open_: Sequence[int]) -> str:
    """A line for each rank of the group; `ranks` run the cell, `open_` have not ended it."""
    stacks = spots(members, cell, open_)
    flights = members.ask(open_, Ask("flight"), ANSWER_S)
    lines = []
    for rank in range(members.size):
        if rank not in open_:
            said = "has ended the cell" if rank in ranks else "does not run this cell"
        else:
            said = _said(pages, rank, stacks[rank], flights.get(rank))
        lines.append(f"  rank {rank} {said}{_state(members, rank)}")
    return "where the ranks are:\n" + "\n".join(lines)


def spots(members: Members, cell: Cell, ranks: Sequence[int]) -> dict[int, Spot]:
    """Where the Python of these ranks stands now."""
    paths = {rank: members.folder / f"stack.{rank}" for rank in ranks}
    sizes = {rank: path.stat().st_size for rank, path in paths.items()}
    members.signal(ranks, signal.SIGUSR1)
    until_s = time.monotonic() + ANSWER_S
    while any(path.stat().st_size == sizes[rank] for rank, path in paths.items()) and time.monotonic() < until_s:
        time.sleep(0.002)  # a file has no other way to tell that it grew
    return {rank: _spot(path, sizes[rank], cell) for rank, path in paths.items()}


def stuck_text(members: Members, cell: Cell, ranks: Sequence[int]) -> str:
    """Which ranks are still busy, and with what."""
    if not ranks:
        return ""
    where = spots(members, cell, ranks)
    return "; ".join(f"rank {rank} is {_busy(members, rank, where[rank])}" for rank in ranks)


def progress(pages: Watched, open_: Sequence[int], done: Sequence[int]) -> str:
    """Who is where, from the pages alone, so that watched ranks are not slowed."""
    said: dict[str, list[int]] = {}
    for rank in open_:
        waits = pages.waits(rank)
        said.setdefault(f"in {waits[0]}" if waits else "in no collective", []).append(rank)
    if done:
        said["done"] = list(done)
    return "; ".join(f"{ranks_text(tuple(ranks))}: {text}" for text, ranks in said.items())


def pending(flight: object, longer_than_s: float) -> list[str]:
    """The collectives in torch's record which have been waited for so long, in words."""
    entries = flight if isinstance(flight, list) else []
    old_ns = time.time_ns() - longer_than_s * 1e9
    open_ = [entry for entry in entries if not entry["retired"] and entry["time_created_ns"] < old_ns]
    return [_raw(entry) for entry in open_]


def _raw(entry: dict[str, object]) -> str:
    sizes = entry["input_sizes"]
    shapes = ", ".join(str(tuple(size)) for size in sizes) if isinstance(sizes, list) else ""
    name = str(entry["profiling_name"]).rpartition(":")[2]
    return f"{name} of {shapes}" if shapes else name


def _said(pages: Watched, rank: int, spot: Spot, flight: object) -> str:
    waits = pages.waits(rank)
    if waits:
        return f"waits in {waits[0]} for {time.monotonic() - waits[0].since_s:.1f} s"
    raw = pending(flight, 0.0)
    if raw:
        return f"waits in torch.distributed's own {raw[0]}: {spot}"
    unheard = "; its control thread does not answer" if flight is None else ""
    return f"is in no collective{f': {spot}' if spot.call else ''}{unheard}"


def _busy(members: Members, rank: int, spot: Spot) -> str:
    state = _state(members, rank).removeprefix(", ")
    return f"still in {spot}" if spot.call else state or "busy where no Python is"


def _state(members: Members, rank: int) -> str:
    if rank in members.deaths:
        return ", gone"
    try:
        state = psutil.Process(members.pids[rank]).status()
    except psutil.NoSuchProcess:
        return ", gone"
    return f", {state}" if state in (psutil.STATUS_STOPPED, psutil.STATUS_RUNNING, psutil.STATUS_ZOMBIE) else ""


def _spot(path: Path, start: int, cell: Cell) -> Spot:
    with open(path, "rb") as file:
        file.seek(start)
        frames = FRAME.findall(file.read().decode(errors="replace"))
    here = [int(line) for name, line, _ in frames if name == cell.name]
    if here:
        return Spot(here[0], call_at(cell.numbered, here[0]))
    return Spot(0, f"{frames[0][2]} ({Path(frames[0][0]).name}, line {frames[0][1]})" if frames else "")
