"""Who decides while it runs (asynchronous servers, stale synchrony, partial all-reduce)."""

from __future__ import annotations

from typing import Protocol

from lt_core.base.action import Action


class Policy(Protocol):
    """Gives each idle rank its next action, or None for "ask again after the next completion".

    What an action reads, it reads inside `next`: a version read a moment later could not be replayed.
    """

    @property
    def size(self) -> int:
        """Ranks 0 .. size - 1 are asked."""
        ...

    def next(self, rank: int) -> Action | None:
        """What `rank`, which is idle, does now."""
        ...

    def done(self, action: Action) -> None:
        """`action` is finished."""
        ...
