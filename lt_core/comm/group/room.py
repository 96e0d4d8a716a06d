"""Whether there is memory for so many ranks: a machine that swaps is slower than one that says no."""

from __future__ import annotations

from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text
from lt_core.comm.limits import RANK_BYTES


def check(size: int, free: int) -> None:
    """Errors: `UserError` with the largest number of ranks that fits."""
    fits = max(0, free // RANK_BYTES)
    if size > fits:
        what = f"{size} ranks do not fit the memory that is free"
        needed = f"about {bytes_text(RANK_BYTES)} for each rank"
        attempt = f"-n {fits}" if fits else "ending other programs"
        raise UserError(what, f"{bytes_text(free)} free", needed, attempt)
