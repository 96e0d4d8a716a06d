"""A small all-reduce over gloo goes in one round: the sum by rank, bit for bit, whatever else is under way."""

import pytest
import torch

from lt_core.base.errors import Aborted, Deadline
from lt_core.comm import small

pytestmark = pytest.mark.processes
KINDS = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.int32, torch.uint8, torch.int8)
LENGTHS = (32, 33, 1000, 2048)  # of float64: from the least on to the most that goes in one round, and awkward ones


def drawn(rank, elements, dtype):
    """A rank's values."""
    generator = torch.Generator().manual_seed(rank)
    return (15 * torch.rand(elements, generator=generator, dtype=torch.float64)).to(dtype)  # 8 fit an int8


def by_rank(size, elements, dtype):
    """((x0 + x1) + x2) + ..."""
    total, *others = (drawn(rank, elements, dtype) for rank in range(size))
    for other in others:
        total += other
    return total


def sums(comm):
    all_ = [drawn(comm.rank, n, kind) for kind in KINDS for n in LENGTHS]
    quick = [x for x in all_ if small.suits(comm.size, x.nbytes)]
    others = [drawn(comm.rank, n, torch.float64) for n in (1, 31, 2049)]  # gloo's own
    for x in (*quick, *others):
        comm.all_reduce(x)
    return quick, others


@pytest.mark.parametrize("size", [3, 4, 8])
def test_the_sum_is_that_of_the_ranks_in_their_order(processes, size):
    for quick, others in processes(size).run(sums):
        assert {x.dtype for x in quick} == set(KINDS)
        for x in quick:
            assert torch.equal(x, by_rank(size, x.numel(), x.dtype)), (x.numel(), x.dtype)
        for x in others:
            torch.testing.assert_close(x, by_rank(size, x.numel(), x.dtype), rtol=1e-12, atol=1e-12)


def test_it_is_chosen_by_size_and_ranks():
    assert [small.suits(4, nbytes) for nbytes in (255, 256, 16 << 10, (16 << 10) + 1)] == [False, True, True, False]
    assert [small.suits(size, 4096) for size in (1, 2, 3, 8)] == [False, False, True, True]


def test_it_runs_over_one_round_of_gloo(processes):
    def posted(comm):
        names = []
        group = comm._carrier.torch
        group_all_to_all = type(group).alltoall_base
        type(group).alltoall_base = lambda *args: names.append("alltoall") or group_all_to_all(*args)
        try:
            comm.all_reduce(torch.ones(100))
            comm.all_reduce(torch.ones(1))
        finally:
            type(group).alltoall_base = group_all_to_all
        return names

    assert processes(4).run(posted) == [["alltoall"]] * 4


def begun(comm):
    comm.traffic.clear()
    shape = torch.ones(4, 25, dtype=torch.float64) * (comm.rank + 1)
    leaf = torch.full((64,), float(comm.rank), requires_grad=True)
    with torch.inference_mode():
        inference = torch.full((64,), float(comm.rank))
    scalar = torch.tensor(float(comm.rank))
    works = [comm.start("all_reduce", x) for x in (shape, leaf, inference, scalar)]
    comm.barrier()
    told = torch.full((100,), comm.rank)
    comm.broadcast(told, 1)
    comm.all_reduce(told)
    for work in reversed(works):
        work.wait()
        work.wait()  # a second time changes nothing
    spans = [work.span() for work in works]
    return shape, leaf.detach(), inference.clone(), scalar, told, spans, dict(comm.traffic.by_law.bytes_to)


def test_it_is_begun_among_others_and_counted_as_ever(processes):
    for rank, (shape, leaf, inference, scalar, told, spans, counted) in enumerate(processes(4).run(begun)):
        passed_on = 0 if rank == 0 else 800  # of rank 1's broadcast
        assert torch.equal(shape, torch.full((4, 25), 10.0, dtype=torch.float64))
        assert torch.equal(leaf, torch.full((64,), 6.0)) and torch.equal(inference, leaf)
        assert scalar == 6 and torch.equal(told, torch.full((100,), 4))
        assert all(start_s <= end_s for start_s, end_s in spans)
        assert counted == {(rank + 1) % 4: 2 * 3 * (800 + 256 + 256 + 4 + 800) // 4 + passed_on}


def late(comm):
    comm.barrier()  # from here on nobody but rank 3 is late
    comm.timeout_s = 0.3
    if comm.rank == 3:
        return ""
    with pytest.raises((Deadline, Aborted)) as caught:
        comm.all_reduce(torch.ones(100))
    return str(caught.value)


def test_a_wait_of_it_has_its_deadline(processes):
    told = processes(4).run(late)
    assert any("all_reduce: of 4 ranks [3] have not come" in text for text in told), told
