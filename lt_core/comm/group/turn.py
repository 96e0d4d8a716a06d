"""One cell under way, as the kernel sees it: who has answered, whether somebody can never be met, and how all get out.

wait --all answered--> over
     --an error--> 0.3 s for the others --> SIGINT --> 0.2 s --> their sockets are shut --> 0.5 s --> over
     --interrupted, a wait too long, a wait for a rank that has ended the cell--> SIGINT ...
     --a death--> 0.3 s for the others --> over
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from lt_core.comm.failure import Failure
from lt_core.comm.group.cell import Ask, Cell, Line, Reply
from lt_core.comm.group.fold import Fold
from lt_core.comm.group.members import Members
from lt_core.comm.group.pages import Watched
from lt_core.comm.group.report import progress, report
from lt_core.comm.group.stuck import Stuck, Watch

OTHERS_S = 0.3  # how long after the first error the others may still say what they saw
SIGNAL_S, FREE_S, GIVE_UP_S = 0.0, 0.2, 0.7  # after a cell is to end: the steps that get ranks out of it
REPEAT_S = 0.1  # how often the signal is sent: one that comes just before a system call is entered does not end it
SHOWN_S, AGAIN_S = 2.0, 0.5  # when and how often it is said who is where
QUICK_S = 0.005  # a cell that is over within it is not looked at while it prints
LOOK_S = 0.1  # how often the pages are looked at


class Screen(NamedTuple):
    """What the caller wants to hear of while a cell runs."""

    show: Callable[[Line], None]
    progress: Callable[[str], None]
    interrupted: Callable[[], bool]


class Turn:
    """A cell that these ranks have been asked to run."""

    def __init__(
        self, members: Members, pages: Watched, cell: Cell, number: int, generation: int, ranks: tuple[int, ...]
    ) -> None:
        self.members, self.pages, self.cell, self.number, self.ranks = members, pages, cell, number, ranks
        self.replies: dict[int, Reply] = {}
        self.interrupted, self.stuck, self.signalled = False, None, False
        self.begun_s = time.monotonic()
        self._watch = Watch(members, pages, cell, generation, ranks)
        self._fold = Fold(ranks)
        self._failed_s = self._out_s = self._signalled_s = 0.0
        self._looked_s = self.begun_s
        self._said_s = self.begun_s + SHOWN_S
        self._freed = False

    stuck: Stuck | None

    @property
    def open(self) -> tuple[int, ...]:
        """The ranks that have neither answered nor died."""
        return tuple(r for r in self.ranks if r not in self.replies and r not in self.members.deaths)

    def run(self, screen: Screen) -> None:
        """Hold until every rank has answered, or need not be waited for any more."""
        now_s = self.begun_s
        self._show(screen.show, now_s)
        while not self._over(now_s):
            quick = now_s < self.begun_s + QUICK_S
            for message in self.members.hear(QUICK_S if quick else self._wait_s(now_s), printed=not quick):
                if isinstance(message, Reply) and message.number == self.number:
                    self._take(message)
            now_s = time.monotonic()
            self._show(screen.show, now_s)
            if self.open:
                self._judge(screen, now_s)
                self._get_out(now_s)
        self._finish(screen.show)

    def failures(self) -> list[Failure]:
        """What went wrong on ranks; who was told to stop is no culprit."""
        failures = [reply.failure for reply in self.replies.values() if reply.failure]
        if self.signalled:
            told = [f.kind == "KeyboardInterrupt" for f in failures]
            failures = [f._replace(consequence=f.consequence or was) for f, was in zip(failures, told)]
        return failures + self.members.failures()

    def _take(self, reply: Reply) -> None:
        self.replies[reply.rank] = reply
        if reply.failure and not self._failed_s:
            self._failed_s = time.monotonic()

    def _over(self, now_s: float) -> bool:
        members = self.members
        if members.deaths or members.tree.ended:
            first_s = min((death.at_s for death in members.deaths.values()), default=now_s)
            return bool(members.tree.ended) or now_s >= first_s + OTHERS_S
        if self.open:
            return bool(self._out_s) and now_s >= self._out_s + GIVE_UP_S
        failures = [reply.failure for reply in self.replies.values() if reply.failure]
        nobody_began = bool(failures) and all(failure.consequence for failure in failures) and not self._out_s
        return not nobody_began or now_s >= self._failed_s + OTHERS_S  # a death may still turn out to be the cause

    def _judge(self, screen: Screen, now_s: float) -> None:
        """Find reasons to end the cell."""
        if self._out_s:
            return
        if screen.interrupted():
            self.interrupted, self._out_s = True, now_s
        elif self._failed_s:
            self._out_s = self._failed_s + OTHERS_S
        elif now_s >= self._looked_s + LOOK_S:
            self._looked_s = now_s
            self.stuck = self._watch.look(self.open, now_s, now_s - self.begun_s)
            if self.stuck:
                self.stuck = self.stuck._replace(
                    report=report(self.members, self.pages, self.cell, self.ranks, self.open)
                )
                self._out_s = time.monotonic()
            elif now_s >= self._said_s:
                self._said_s = now_s + AGAIN_S
                screen.progress(progress(self.pages, self.open, tuple(self.replies)))

    def _get_out(self, now_s: float) -> None:
        """Take the next step that gets ranks out of the cell."""
        if not self._out_s or self.members.deaths:
            return
        if now_s >= max(self._out_s + SIGNAL_S, self._signalled_s + REPEAT_S):
            self.signalled, self._signalled_s = True, now_s
            self.members.signal(self.open, signal.SIGINT)
        if not self._freed and now_s >= self._out_s + FREE_S:
            self._freed = True
            self.members.send(self.open, Ask("free", self._reason()), to="desk")

    def _reason(self) -> str:
        if self.interrupted:
            return "the cell was interrupted"
        return self.stuck.message if self.stuck else "another rank failed"

    def _wait_s(self, now_s: float) -> float:
        steps = [self._out_s + step for step in (SIGNAL_S, FREE_S, GIVE_UP_S)] if self._out_s else []
        steps += [s + OTHERS_S for s in (self._failed_s, *(d.at_s for d in self.members.deaths.values())) if s]
        steps += [self._fold.due_s] if self._fold.due_s else []
        return min([LOOK_S, *(step - now_s for step in steps if step > now_s)])

    def _show(self, show: Callable[[Line], None], now_s: float) -> None:
        self._fold.add(self.members.ears.take())
        for line in self._fold.take(now_s):
            show(line)

    def _finish(self, show: Callable[[Line], None]) -> None:
        """Show the rest: of who answered up to the mark, of who died all there is."""
        ears = self.members.ears
        ears.marked(self.replies, self.number, within_s=1.0)
        if self.members.deaths:
            ears.drain()
        elif self.open:
            ears.forget(self.open)
        self._fold.add(ears.take())
        for line in self._fold.take(float("inf")):
            show(line)
