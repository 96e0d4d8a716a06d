"""What every collective goes through before it is begun: inputs are checked, bytes counted by the ring's law."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from lt_core.comm import checks, laws
from lt_core.comm.comm import Comm


def prepared(comm: Comm, verb: str, args: Sequence[Any], counting: threading.Lock) -> Sequence[Any] | None:
    """What `Collectives` is to be called with; None where nothing has to move. `counting` guards `comm.traffic`."""
    if verb == "barrier":
        return args
    if verb == "all_to_all":
        return _all_to_all(comm, args, counting)
    getattr(checks, verb)(comm, *args)
    whole, root = args[1 if verb == "reduce_scatter" else 0], args[1] if verb == "broadcast" else 0
    with counting:
        laws.count(comm.traffic, verb, whole.nbytes, comm.size, comm.rank, root)
    return args if whole.numel() else None


def _all_to_all(comm: Comm, args: Sequence[Any], counting: threading.Lock) -> Sequence[Any]:
    """Its rows become bytes; who sends nothing may still receive."""
    (out, x, *_), counts = args, checks.all_to_all(comm, *args)
    come, go = ([rows * _row_bytes(x) for rows in some] for some in counts)
    with counting:
        laws.count_all_to_all(comm.traffic, comm.rank, go)
    return out, x, come, go


def _row_bytes(x: Tensor) -> int:
    return x.shape[1:].numel() * x.element_size()
