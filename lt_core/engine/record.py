"""What happened, written down as a schedule: each rank's actions in the order of their ends, and what was known when
each was given. So a run that was decided on the way can be priced, drawn and replayed like one that was planned.
"""

from __future__ import annotations

from collections.abc import Sequence

from lt_core.base.action import Action
from lt_core.base.errors import UserError
from lt_core.base.policy import Policy
from lt_core.base.schedule import Schedule


class Record:
    """Who was given what, and what has ended since."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.ended: list[Action] = []
        self._needs: dict[Action, tuple[Action, ...]] = {}
        self._known: dict[int, Action] = {}  # the last action that each rank has ended

    def give(self, rank: int) -> Action | None:
        """What the policy gives `rank`, written down. Errors: an action of another rank, or one given before."""
        a = self.policy.next(rank)
        if a is None:
            return None
        name = type(self.policy).__name__
        if a.rank != rank:
            raise UserError(f"{name} gave {a} to rank {rank}", f"an action of rank {a.rank}", f"one of rank {rank}")
        if a in self._needs:
            raise UserError(f"{name} gave {a} to rank {rank} twice", attempt="count repeats in `batch`")
        self._needs[a] = tuple(self._known.values())
        return a

    def end(self, a: Action) -> None:
        """It is over (of a transfer both ends, one after the other); the policy is told."""
        self.ended.append(a)
        self._known[a.rank] = a
        self.policy.done(a)

    def schedule(self) -> Schedule:
        """What has ended, as a schedule; its `needs` stand in the order of the ends, of all ranks together."""
        lanes: Sequence[list[Action]] = [[] for _ in range(self.policy.size)]
        for a in self.ended:
            lanes[a.rank].append(a)
        needs = {a: self._needs[a] for a in self.ended}
        return Schedule(type(self.policy).__name__, tuple(map(tuple, lanes)), needs)
