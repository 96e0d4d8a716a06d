"""What a cell's end means: an outcome, or the one exception that begins with the rank which failed first."""

from __future__ import annotations

import time
from typing import NamedTuple

from lt_core.base.errors import RankError
from lt_core.comm import failure
from lt_core.comm.failure import Failure
from lt_core.comm.group.cell import Cell, Interrupted, Outcome
from lt_core.comm.group.members import Members
from lt_core.comm.group.report import stuck_text
from lt_core.comm.group.tree import OUTSIDE
from lt_core.comm.group.turn import OTHERS_S, Turn


class Verdict(NamedTuple):
    """An outcome or an error; `lost`: why the group is no more; `broken`: its communicator is to be made anew."""

    outcome: Outcome | None
    error: BaseException | None = None
    lost: str = ""
    broken: bool = False


def verdict(turn: Turn) -> Verdict:
    """What came of a turn."""
    failures = turn.failures()
    broken = bool(failures or turn.open) or any(reply.broken for reply in turn.replies.values())
    gone = lost(turn.members)
    if turn.interrupted:
        return Verdict(None, Interrupted(_interrupted(turn)), gone, True)
    if turn.stuck:
        return Verdict(None, _stuck(turn), gone, True)
    if gone or failures:
        return Verdict(None, _failed(turn, failures, gone), gone, True)
    return Verdict(_outcome(turn), None, "", broken)


def lost(members: Members) -> str:
    """Why a group is no more, or nothing: it was ended, or a rank has died."""
    if members.deaths and not members.tree.outlived(OTHERS_S):
        died = failure.first(members.failures())
        return f"rank {died.rank} {died.kind}: {died.message}"
    return members.tree.ended


def _interrupted(turn: Turn) -> str:
    stuck = stuck_text(turn.members, turn.cell, turn.open)
    after = "; the next cell waits for it, %torchrun restart does not" if stuck else ""
    return f"the cell was interrupted{f': {stuck}' if stuck else ''}{after}"


def _stuck(turn: Turn) -> RankError:
    assert turn.stuck
    return RankError(*turn.stuck)


def _failed(turn: Turn, failures: list[Failure], gone: str) -> BaseException:
    if gone == OUTSIDE or not failures:
        return RuntimeError(f"the group is no more: {gone}")
    still = stuck_text(turn.members, turn.cell, turn.open) if not gone else ""
    told = failure.error(failures, still)
    line = _line(turn.cell, failure.first(failures))
    raised = RankError(told.rank, told.kind, told.message, "\n".join(part for part in (line, told.details) if part))
    raised.__cause__ = told.__cause__
    return raised


def _line(cell: Cell, culprit: Failure) -> str:
    """The cell's own line, wherever below it the error was raised."""
    places = [place for told in culprit.told[-1:] for place in told.places if place[0] == cell.name]
    return f"line {places[-1][1]} of the cell: {places[-1][3].strip()}" if places else ""


def _outcome(turn: Turn) -> Outcome:
    from lt_core.comm import parcel

    replies = {rank: turn.replies[rank] for rank in turn.ranks}
    values = {rank: reply.value for rank, reply in replies.items() if reply.value is not None}
    given = {rank: reply.outs or {} for rank, reply in replies.items()}
    outs = {
        name: [parcel.unpacked(data[name], f"--out {name} of rank {rank}") for rank, data in given.items()]
        for name in turn.cell.wanted
    }
    return Outcome(values, outs, time.monotonic() - turn.begun_s)
