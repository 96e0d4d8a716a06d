"""Ranks that are not alike: seconds of a computation by rank, for policies whose point is that somebody is slow."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from lt_core.base.action import Action, Op
from lt_core.base.errors import UserError
from lt_core.engine.costs import Unit


@dataclass(frozen=True)
class Speeds:
    """Costs in which a forward or backward of rank r takes `seconds_by_rank[r]`, and messages what `messages` says.

    Ranks beyond the list, such as servers, compute in no time. `Speeds([1, 1, 1, 10])`.
    """

    seconds_by_rank: Sequence[float]
    messages: Unit = field(default_factory=Unit)

    def __post_init__(self) -> None:
        if wrong := [s for s in self.seconds_by_rank if s < 0]:
            raise UserError("a rank cannot compute in less than no time", f"{wrong[0]:g} s", "0 or more seconds")

    def seconds(self, action: Action) -> float:
        """The rank's own for F and B; the message's for a transfer; none for an update."""
        if action.peer >= 0:
            return self.messages.seconds(action)
        slow = action.op in (Op.F, Op.B) and action.rank < len(self.seconds_by_rank)
        return self.seconds_by_rank[action.rank] if slow else self.messages.seconds(action)

    def kept_bytes(self, action: Action) -> int:
        """None."""
        return 0

    def extra_bytes(self, action: Action) -> int:
        """None."""
        return 0

    def shared(self, action: Action) -> tuple[Hashable, ...]:
        """What `messages` says."""
        return self.messages.shared(action)
