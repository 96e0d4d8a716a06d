"""What an action costs in round numbers, so that a simulation can be held against a closed form.

A message of n units takes alpha + beta n (latency, then bandwidth); an ADD takes gamma n more. Ranks of one node share
its NIC: their messages to other nodes take turns. Costs of a real machine and model: `of_cluster`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

from lt_core.base.action import Action, Op
from lt_core.base.costs import Costs, Sized
from lt_core.base.errors import UserError
from lt_core.engine.priced import Priced, nics, of_cluster

__all__ = ["Costs", "Priced", "Sized", "Unit", "of_cluster"]


@dataclass(frozen=True)
class Unit:
    """Costs in round numbers, for closed forms: `Unit(by={"F": 1, "B": 2}, alpha=0.5, kept={"F": 1, "B": -1})`.

    by: seconds of a verb, by its name (0 for the others).  alpha, beta, gamma: seconds of a message, of each unit in
    it, of each unit that an ADD adds.  kept, extra: bytes, by verb.  node: ranks a node, which share its NIC (0: no
    nodes).  slow: how many times longer a message between nodes takes. Errors: `UserError` for an unknown verb.
    """

    by: Mapping[str, float] = field(default_factory=dict)
    alpha: float = 0.0
    beta: float = 0.0
    gamma: float = 0.0
    kept: Mapping[str, int] = field(default_factory=dict)
    extra: Mapping[str, int] = field(default_factory=dict)
    node: int = 0
    slow: float = 1.0

    def __post_init__(self) -> None:
        for name in (*self.by, *self.kept, *self.extra):
            if name not in Op.__members__:
                raise UserError(f"{name!r} is no verb", expected="one of " + ", ".join(Op.__members__))

    def seconds(self, action: Action) -> float:
        """alpha + beta units for a SEND, gamma units for an ADD, and what `by` says."""
        op = action.op
        own = self.by.get(op._name_, 0.0)
        if action.peer < 0:
            return own
        if op.stream == "out":
            message = self.alpha + self.beta * action.count
            return own + (message * self.slow if self.node and self.shared(action) else message)
        return own + self.gamma * action.count if op is Op.ADD else own

    def kept_bytes(self, action: Action) -> int:
        """What `kept` says of its verb."""
        return self.kept.get(action.op._name_, 0)

    def extra_bytes(self, action: Action) -> int:
        """What `extra` says of its verb."""
        return self.extra.get(action.op._name_, 0)

    def shared(self, action: Action) -> tuple[Hashable, ...]:
        """The NICs of both nodes, of a message between nodes."""
        if not self.node or action.peer < 0:
            return ()
        return nics(action.rank // self.node, action.peer // self.node)
