"""The banner says in five lines what a run stands on, by what was measured and by which back end was taken."""

import pytest

from lt_core.base.cluster import Cluster, Device, Wire
from lt_core.teaching import banner

MACHINE = Cluster("here", Device("CPU", 4 * 10**9), 4, Wire("here", 85e-6, 1.25e9))


def test_five_lines_of_a_small_machine(capsys):
    banner(MACHINE, "gloo", cores=2)
    assert capsys.readouterr().out.splitlines() == [
        "cores    2, shared by 4 ranks",
        "ranks    4, each a process of its own",
        "carried  by gloo: not every rank has a GPU of its own here",
        "memory   4 GB for each rank (CPU)",
        "link     10 Gbit/s, 85 us until the first byte (by ping-pong, now)",
    ]


@pytest.mark.parametrize(
    ("backend", "said"),
    [("nccl", "each rank has a GPU of its own"), ("threads", "they are threads of one process")],
)
def test_why_that_back_end(capsys, backend, said):
    banner(MACHINE, backend, cores=8)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "cores    8" and shown[2] == f"carried  by {backend}: {said}"


def test_cores_are_those_of_this_machine_unless_given(capsys):
    banner(MACHINE, "gloo")
    assert capsys.readouterr().out.startswith("cores    ")
