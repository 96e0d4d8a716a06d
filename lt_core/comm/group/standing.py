"""A group that stands, from one start to its end: it takes one cell after another, and mends itself in between."""

from __future__ import annotations

import shutil
from collections.abc import Mapping

from lt_core.comm import folders
from lt_core.comm.group.cell import Ask, Cell, Interrupted, Job, Line, Outcome, Renew, Reply
from lt_core.comm.group.members import Members
from lt_core.comm.group.pages import Watched, generation_folder, now
from lt_core.comm.group.report import ANSWER_S, stuck_text
from lt_core.comm.group.turn import Screen, Turn
from lt_core.comm.group.verdict import lost, verdict

MARKS_S = 1.0  # how long the output of ranks that come out of an old cell is waited for
DEAF_S = 5.0  # how long a rank may stay in a verb whose connections were shut: gloo has lost it then


class Standing:
    """The ranks of one start. `over`: why it takes no further cell, once that is so."""

    def __init__(self, members: Members) -> None:
        self.members, self.over = members, ""
        self._pages = Watched(members.folder, members.size)
        self._everyone = tuple(range(members.size))
        self._number = self._generation = 0
        self._broken = False  # its communicators are to be made anew
        self._busy: dict[int, Cell] = {}  # ranks that have not come out of an earlier cell

    def look(self, within_s: float = 0.0) -> str:
        """Why it takes no further cell, or nothing. Answers to earlier cells are noted: who gave one is free."""
        members = self.members
        for message in members.hear(within_s):
            if isinstance(message, Reply):
                self._busy.pop(message.rank, None)
        if not self.over and (members.deaths or members.tree.ended):
            self.over = lost(members)
        if not self.over and not members.folder.exists():  # a cell may have cleared it away
            self.over = f"its folder {members.folder} was removed"
        return self.over

    def settle(self, screen: Screen) -> None:
        """Wait for the ranks that are still in an earlier cell, as long as that lasts; `over` then says how it stands.

        Errors: `Interrupted`, after which it is over.
        """
        if self._busy and not self.look():
            with self.members.ears.attended():
                self._wait_for_busy(screen, now())
        self.look()

    def run(
        self, cell: Cell, code: bytes, ranks: tuple[int, ...], given: Mapping[str, bytes], screen: Screen
    ) -> Outcome:
        """What these ranks make of the cell."""
        with self.members.ears.attended():
            if self._broken:
                self._renew(cell, screen)
            called = (cell.numbered, code, cell.name)
            job = Job(self._next(), *called, dict(given), cell.wanted, cell.timeout_s, cell.passing)
            return self._turn(cell, ranks, job, screen)

    def _renew(self, cell: Cell, screen: Screen) -> None:
        """New communicators, in a folder that nobody has written to; all variables stay."""
        folders.check_room(self.members.folder.parent)  # of a full disk torch names neither file nor folder
        self._generation += 1
        nothing = cell._replace(wanted=())
        self._turn(nothing, self._everyone, Renew(self._next(), self._generation, cell.timeout_s), screen)
        self._pages.forget()
        shutil.rmtree(generation_folder(self.members.folder, self._generation - 1), ignore_errors=True)

    def _turn(self, cell: Cell, ranks: tuple[int, ...], job: Job | Renew, screen: Screen) -> Outcome:
        turn = Turn(self.members, self._pages, cell, job.number, self._generation, ranks)
        self.members.send(ranks, job)
        self._broken = True
        try:
            turn.run(screen)
        finally:
            self._busy = dict.fromkeys(turn.open, cell)
        came = verdict(turn)
        self._broken, self.over = came.broken, came.lost
        if came.error:
            raise came.error
        assert came.outcome
        return came.outcome

    def _wait_for_busy(self, screen: Screen, begun_s: float) -> None:
        ranks = tuple(self._busy)
        screen.show(Line((), "err", f"waiting: {stuck_text(self.members, self._busy[ranks[0]], ranks)}"))
        while self._busy and not self.look(within_s=1.0):
            self.members.ears.take()
            if screen.interrupted():
                self.over = "it was ended by a second interrupt"
                raise Interrupted("interrupted again: the group was ended, and its variables with it")
            if now() > begun_s + DEAF_S:
                self.over = self._deaf(begun_s)
        if not self.over:
            self.members.ears.marked(ranks, self._number, MARKS_S)

    def _deaf(self, since_s: float) -> str:
        """Which rank has not come out of a wait, although its connections were shut before; or nothing.

        That is nobody's code but gloo's, and no rank can do anything about it. Who computes is not meant: it will end.
        """
        waits = [(r, where) for r in self._busy for where in self._pages.waits(r) if where.since_s < since_s]
        heard = self.members.ask([r for r, _ in waits], Ask("flight"), ANSWER_S)  # who was told and so was freed
        said = [f"rank {r} stayed in {where} for {DEAF_S:g} s after it was freed" for r, where in waits if r in heard]
        return said[0] if said else ""

    def _next(self) -> int:
        self._number += 1
        return self._number
