"""A group's own shaped wire: who waits for it comes out when the group is freed."""

import pytest

from lt_core.base.cluster import Wire
from lt_core.comm.group import Group
from tests.comm.group.conftest import run

pytestmark = pytest.mark.processes

WAITS_TWICE = """
work, one = comm.start("all_reduce", torch.ones(5000)), torch.ones(1)
for beneath in work._work._works:
    beneath.wait()
if rank == 0:
    comm.exchange([], [(one, 1)])
    1 / 0
told = comm.start("exchange", [(one, 0)], [])
try:
    work.wait()
except KeyboardInterrupt:
    print("once more")
    work.wait()
"""


def test_who_waits_for_a_shaped_wire_is_freed_too():
    """20 s of it are left when rank 0 fails, and an interrupt alone does not end the wait."""
    shaped = Group(2, backend="gloo", owner="shaped.ipynb", shape=Wire("slow", 1e-3, 1e3))
    try:
        seen = run(shaped, WAITS_TWICE)
        assert seen.texts() == [((1,), "once more")]
        assert "rank 1: Aborted: " in str(seen.error) and "rank 1 is still" not in str(seen.error)
    finally:
        shaped.stop()
