"""Real processes share memory: laws and contract hold as everywhere, a death is heard, nothing is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from lt_core.base.errors import Aborted, Mismatch, RankError
from lt_core.collectives import ring
from lt_core.comm import host, launch
from lt_core.comm.buffers import allocate
from lt_core.comm.shared_memory import names
from tests.comm.shared_memory.test_verbs import WAYS, counted, crossed, halves, moved, on_a_parameter, summed
from tests.sharing import SHARED, on_shared_memory
from tests.test_laws import INPUTS, Case, hold_to_its_law
from tests.test_laws import summed as right_sum

pytestmark = SHARED.marks


def named():
    """Names of ours in shared memory."""
    place = names.folder()
    return sorted(path.name for path in place.glob(f"{names.PREFIX}*")) if place else []


def everything(comm):
    """All that threads were asked, of one group; what is in it that is wrong."""
    size, found = comm.size, {}
    found["sums"] = summed(comm, WAYS)
    found["halves"] = [halves(comm, 20_001, torch.float32, ways) for ways in (WAYS[:1] * 3, WAYS[1:] * 3)]
    found["moved"] = [moved(comm, 70_001, dtype, way) for way in WAYS for dtype in (torch.float32, torch.bool)]
    found["messages"] = [crossed(comm, 300_001, torch.float64), crossed(comm, 1, torch.float32)]
    found["names"] = [named() == []]
    found["back end"] = [comm.backend == "shared_memory", comm.size == size]
    return [name for name, said in found.items() if not all(said)]


@on_shared_memory
@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_all_verbs_to_the_bit(ranks, size):
    assert ranks(size).run(everything) == [[]] * size


@on_shared_memory
@pytest.mark.parametrize("size", [2, 5])
def test_laws_hold(ranks, size):
    hold_to_its_law(ranks(size), Case("ring", "lt_core.collectives.ring", ring, right_sum), size, INPUTS)


@on_shared_memory
def test_traffic_and_parameters(ranks):
    def both(comm):
        return counted(comm).copy(), on_a_parameter(comm)

    for rank, (traffic, given) in enumerate(ranks(3).run(both)):
        right = (rank + 1) % 3
        assert (traffic.counted.bytes_to, traffic.by_law.bytes_to) == ({right: 40}, {right: 160})
        assert given[1:3] == (True, 6.0)


@on_shared_memory
def test_nothing_crosses_the_loopback(ranks):
    def crossed_bytes(comm):
        x = torch.ones(4 << 20)
        comm.barrier()
        before = host.loopback_bytes()
        comm.all_reduce(x)
        comm.barrier()
        return host.loopback_bytes() - before, x.nbytes

    # others may use it meanwhile; gloo would need 16 MiB from each of the two
    assert min(sent / nbytes for sent, nbytes in ranks(2).run(crossed_bytes)) < 0.5


@on_shared_memory
def test_the_contract_names_what_differs(ranks):
    def fn(comm):
        x = allocate(comm, 8)
        with pytest.raises(Mismatch) as caught:
            comm.broadcast(x, 0) if comm.rank == 1 else comm.all_reduce(x)
        return str(caught.value)

    texts = ranks(3).run(fn)
    assert len(set(texts)) == 1
    assert "rank 1 calls broadcast of (8,) float32 from rank 0" in texts[0]


@on_shared_memory
def test_the_contract_names_buffers_that_differ(ranks):
    def fn(comm):
        with pytest.raises(Mismatch) as caught:
            allocate(comm, 8 + comm.rank)
        return str(caught.value)

    text = "collective 1 of this group: rank 0 calls allocate of (8,) float32, rank 1 calls allocate of (9,) float32"
    assert {said.partition(";")[0] for said in ranks(2).run(fn)} == {text}


@on_shared_memory
def test_an_abort_is_heard_at_once(ranks):
    def fn(comm):
        group = comm.subset([1, 0, 2])
        if comm.rank == 2:
            comm.exchange([], [(torch.empty(1), 0), (torch.empty(1), 1)])
            group.abort("seen enough")
            return 0.0
        comm.exchange([(torch.ones(1), 2)], [])
        start_s = time.perf_counter()
        with pytest.raises(Aborted, match="seen enough"):
            group.barrier()
        return time.perf_counter() - start_s

    assert max(ranks(3).run(fn)) < 5  # of 30 that a wait may last


def dies_in_a_collective(comm):
    """Rank 1 is killed between the two meetings of an all_reduce in place, while rank 0 waits for it."""
    x = allocate(comm, 1 << 20)
    if comm.rank == 1:
        comm.start("all_reduce", x)  # it comes to the first
        comm.exchange([], [(torch.empty(1), 0)])
        os.kill(os.getpid(), signal.SIGKILL)
    comm.exchange([(torch.ones(1), 1)], [])
    for _ in range(3):
        comm.all_reduce(x)


def test_a_launch_names_a_rank_that_is_killed_and_leaves_nothing():
    with pytest.raises(RankError) as caught:
        launch(dies_in_a_collective, 2, backend="shared_memory")
    assert str(caught.value).startswith("rank 1 failed first: died: signal 9 (SIGKILL)")
    assert named() == []


SCRIPT = """
import sys
from pathlib import Path
from lt_core.comm import join
from tests.comm.shared_memory.test_processes import dies_in_a_collective
rank = int(sys.argv[2])
dies_in_a_collective(join.sharing(join.in_folder(Path(sys.argv[1]), "gloo", rank, 2, 50.0), "shared_memory"))
"""


def test_its_peers_name_a_rank_that_is_killed(tmp_path):
    """Without torchrun, which would end them, too."""
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": host.loopback(), "OMP_NUM_THREADS": "1"}
    root, options = Path(__file__).parents[3], {"env": environment, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", SCRIPT, str(tmp_path)]
    ranks = [subprocess.Popen([*command, str(rank)], cwd=root, **options) for rank in (0, 1)]
    try:
        assert ranks[1].wait(40) == -signal.SIGKILL
        died_s = time.perf_counter()
        text = ranks[0].communicate(timeout=40)[1]
        assert "Aborted: rank 0 lost rank 1 in all_reduce: its process" in text and time.perf_counter() - died_s < 10
        assert named() == []
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
