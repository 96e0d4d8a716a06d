"""The third back end of the tests: ranks of the warm group of gloo, whose communicator shares memory for one test."""

from collections.abc import Callable
from typing import Any

import pytest

from lt_core.comm import Comm
from lt_core.comm.contract import under_contract
from lt_core.comm.shared_memory import names, over

ROOM_BYTES = 64 << 20  # what a group of 8 and its buffers take
SHARED = pytest.param(
    "shared_memory",
    marks=[pytest.mark.processes, pytest.mark.skipif(bool(names.no_room(ROOM_BYTES)), reason="too little /dev/shm")],
)
# For chosen tests: a fixture `ranks` on all three, or on shared memory alone.
on_all = pytest.mark.parametrize(
    "ranks", ["threads", pytest.param("gloo", marks=pytest.mark.processes), SHARED], indirect=True
)
on_shared_memory = pytest.mark.parametrize("ranks", [SHARED], indirect=True)


def sharing(comm: Comm, fn: Callable[..., Any], *args: Any) -> Any:
    """`fn(comm, *args)` with the ranks of `comm` on shared memory, within NCCL's contract."""
    held = over(comm)
    if held is comm:
        raise OSError("the ranks did not come to share memory")
    try:
        return under_contract(held, fn, *args)
    except BaseException as error:
        held.abort(f"rank {comm.rank} raised {type(error).__name__}: {error}")
        raise
