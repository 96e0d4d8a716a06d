"""Whether there is memory for so many ranks: a machine that swaps is slower than one that says no."""

from __future__ import annotations

from pathlib import Path

import psutil

from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text

RANK_BYTES = 223 << 20  # a process with torch in it, before any model
_CGROUPS = (  # a container's limit, and what of it is used: cgroup 2, cgroup 1
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


def free_bytes() -> int:
    """Memory that new processes can have: the machine's, or what a container leaves of it."""
    found = [int(psutil.virtual_memory().available)]
    for limit, used in _CGROUPS:
        if Path(limit).exists() and (text := Path(limit).read_text().strip()).isdigit():
            found.append(int(text) - int(Path(used).read_text()))
    return min(found)


def check(size: int, free: int) -> None:
    """Errors: `UserError` with the largest number of ranks that fits."""
    fits = max(0, free // RANK_BYTES)
    if size > fits:
        what = f"{size} ranks do not fit the memory that is free"
        needed = f"about {bytes_text(RANK_BYTES)} for each rank"
        attempt = f"-n {fits}" if fits else "ending other programs"
        raise UserError(what, f"{bytes_text(free)} free", needed, attempt)
