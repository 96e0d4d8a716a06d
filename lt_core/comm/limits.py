"""What this process may use of the machine: a container often gives it fewer cores and less memory than there are.

Limits are read where control groups state them, version 2 first, then 1; where there are none, the machine counts.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from lt_core.comm import host

RANK_BYTES = 223 << 20  # what a rank holds before it has a model: Python, torch, gloo
_GROUPS = Path("/sys/fs/cgroup")


def cores() -> int:
    """Cores, a part of one counted as one."""
    quota = _numbers("cpu.max") or _numbers("cpu/cpu.cfs_quota_us") + _numbers("cpu/cpu.cfs_period_us")
    return min(host.cores(), max(1, math.ceil(quota[0] / quota[1]))) if len(quota) == 2 else host.cores()


def memory_bytes() -> int:
    """Memory, used or free."""
    machine, limit = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), _limit()
    return machine if limit is None else min(machine, limit)


def free_bytes() -> int:
    """Memory that new processes can have."""
    import psutil

    free, limit = int(psutil.virtual_memory().available), _limit()
    used = _first("memory.current", "memory/memory.usage_in_bytes")
    return free if limit is None or used is None else min(free, limit - max(0, used - _dropped_bytes()))


def _limit() -> int | None:
    return _first("memory.max", "memory/memory.limit_in_bytes")


def _dropped_bytes() -> int:
    """Of what is used: files' pages that nobody asked for lately, which the kernel drops before it refuses memory."""
    for name, key in (("memory.stat", "inactive_file"), ("memory/memory.stat", "total_inactive_file")):
        path = _GROUPS / name
        if path.exists():
            facts = dict(line.split(maxsplit=1) for line in path.read_text().splitlines())
            return int(facts.get(key, 0))
    return 0


def _first(*names: str) -> int | None:
    return next((numbers[0] for name in names if (numbers := _numbers(name))), None)


def _numbers(name: str) -> list[int]:
    """What the file holds; nothing where it is absent, or states no limit ("max", -1)."""
    path = _GROUPS / name
    words = path.read_text().split() if path.exists() else []
    return [int(word) for word in words] if all(word.isdigit() for word in words) else []
