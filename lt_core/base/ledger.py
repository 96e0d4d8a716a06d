"""Which bytes are alive, by owner, now and at the worst moment."""

from __future__ import annotations

from collections import Counter

from lt_core.base.errors import UserError


class Ledger:
    """An account of live bytes: `hold` and `free` them by owner; `peak_bytes` and `at_peak` keep the worst moment."""

    def __init__(self) -> None:
        self.held: Counter[str] = Counter()
        self.peak_bytes = 0
        self.at_peak: dict[str, int] = {}

    @property
    def live_bytes(self) -> int:
        """Bytes alive now, all owners together."""
        return sum(self.held.values())

    def hold(self, owner: str, nbytes: int) -> None:
        """`nbytes` more belong to `owner`."""
        if nbytes < 0:
            raise UserError(f"{owner} cannot hold {nbytes} bytes", expected="0 or more", attempt="call free")
        self.held[owner] += nbytes
        if self.live_bytes > self.peak_bytes:
            self.peak_bytes, self.at_peak = self.live_bytes, dict(self.held)

    def free(self, owner: str, nbytes: int) -> None:
        """`nbytes` of `owner` are given back. Errors: more than it holds."""
        if not 0 <= nbytes <= self.held[owner]:
            raise UserError(f"{owner} cannot free {nbytes} bytes", expected=f"0 to {self.held[owner]}, which it holds")
        self.held[owner] -= nbytes
