"""What `by_law` says of gloo's own all-reduce is what the kernel's loopback counter sees, within 2 %."""

import pytest
import torch

from lt_core.comm import host

NBYTES, TRIES = 16 << 20, 30


def ratio(comm, x):
    """Bytes that crossed the loopback during one all-reduce, over those which the law states, as rank 0 sees it."""
    before, crossed = comm.traffic.copy(), host.loopback_bytes()
    comm.barrier()  # nobody has begun when rank 0 looks
    comm.all_reduce(x)
    comm.barrier()
    law_bytes = comm.size * (comm.traffic - before).by_law.bytes
    return (host.loopback_bytes() - crossed) / law_bytes


def ratios(comm):
    x = torch.ones(NBYTES // 4)
    return [ratio(comm, x) for _ in range(TRIES)]


@pytest.mark.processes
@pytest.mark.skipif(host.loopback_bytes() is None, reason="this system does not count what crosses the loopback")
@pytest.mark.parametrize("size", [2, 4])
def test_the_kernel_counts_what_the_law_states(processes, size):
    # others may use the loopback meanwhile, which only adds: the least disturbed try counts
    least = min(processes(size).run(ratios)[0])
    assert 0.98 <= least <= 1.02
