"""What the price of an action is asked of: the only thing a simulation knows about machines and models."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

from lt_core.base.action import Action


class Costs(Protocol):
    """Seconds and bytes of each action.

    A transfer lasts the seconds of its two ends together: the wire's (SEND), and the sum's (ADD; nothing for a COPY).
    """

    def seconds(self, action: Action) -> float:
        """How long it takes."""
        ...

    def kept_bytes(self, action: Action) -> int:
        """Memory held from its start on; a negative amount is given back at its end."""
        ...

    def extra_bytes(self, action: Action) -> int:
        """Memory held while it runs."""
        ...

    def shared(self, action: Action) -> tuple[Hashable, ...]:
        """What it occupies besides its streams, such as the NIC of a node; of a transfer only the SEND is asked."""
        ...


class Sized(Protocol):
    """Costs, or a machine, which know how many bytes an action moves; their spans carry it."""

    def nbytes(self, action: Action) -> int:
        """Bytes that the action moves; 0 for a computation."""
        ...


def sizes(costs_or_machine: object) -> Callable[[Action], int]:
    """Its own `nbytes` where it is `Sized`, else 0 for every action."""
    nbytes: Callable[[Action], int] | None = getattr(costs_or_machine, "nbytes", None)
    return nbytes or (lambda action: 0)
