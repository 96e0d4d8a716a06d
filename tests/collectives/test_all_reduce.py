"""An all-reduce over ranks gives the sum of whatever tensor, in whatever group, and notes what it did."""

import pytest
import torch

from lt_core.base.action import Op
from lt_core.base.trace import Trace
from lt_core.collectives import ALGORITHMS, Prepared, all_reduce, naive, ring, run
from tests.typed import typed

each_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)


def summed(comm, x, schedule_of):
    before = x.clone()
    result = all_reduce(comm, x, schedule_of(comm.size))
    assert torch.equal(x, before)
    assert not x.numel() or result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    return result


def strided(comm, schedule_of):
    v = comm.rank + 1
    column = torch.tensor([[v, 0], [10 * v, v]])[:, 0]
    assert not column.is_contiguous()
    turned = (torch.arange(6.0, dtype=torch.float64) * v).view(2, 3).t()
    spread = torch.tensor([float(v)]).expand(5)
    return [summed(comm, x, schedule_of) for x in (column, turned, spread)]


@each_algorithm
def test_strided_tensors_are_read_element_by_element(ranks, algorithm):
    """A peer read a strided tensor's storage as if it were dense: wrong numbers, and no error."""
    for column, turned, spread in ranks(2).run(strided, algorithm.schedule):
        assert column.tolist() == [3, 30]
        assert turned.tolist() == [[0, 9], [3, 12], [6, 15]]
        assert spread.tolist() == [3] * 5


def empties(comm, schedule_of):
    before = comm.traffic.copy()
    shapes = [summed(comm, torch.ones(shape), schedule_of).shape for shape in ((0,), (1, 0, 2))]
    return shapes, (comm.traffic - before).messages


@pytest.mark.parametrize("size", [1, 2, 4])
@each_algorithm
def test_tensors_without_elements_come_back_in_their_shape(ranks, algorithm, size):
    """A peer's processes died of a division by zero where a tensor had no elements."""
    shapes = [torch.Size([0]), torch.Size([1, 0, 2])]
    assert ranks(size).run(empties, algorithm.schedule) == [(shapes, 0)] * size


OUT_OF_TURN = typed("0: 0COPY1<1 1SEND0>1\n1: 1COPY0<0 0SEND1>0", {"0COPY1<1": "1SEND0>1", "0SEND1>0": "1COPY0<0"})


def swapped(comm):
    x = torch.tensor([1, 2]) + 10 * comm.rank
    run(comm, x, OUT_OF_TURN)
    return x.tolist()


def test_a_schedule_that_is_no_list_of_rounds(ranks):
    """What rank 0 waits for first comes only after what it sends last."""
    assert ranks(2).run(swapped) == [[11, 2], [11, 2]]


def many_times(comm):
    x = torch.ones(5)
    ring_sum, naive_sum = Prepared(comm, x, ring.schedule(comm.size)), Prepared(comm, x, naive.schedule(comm.size))
    with torch.inference_mode():
        ring_sum()
    for _ in range(2):
        ring_sum()
        naive_sum()
    return x.tolist()


def test_prepared_once_called_many_times(ranks):
    assert ranks(3).run(many_times) == [[3.0**5] * 5] * 3


def scalars(comm):
    with torch.inference_mode():
        below = all_reduce(comm, torch.tensor(1.0 + comm.rank), ring.schedule(comm.size))
        buffer = torch.full((3,), 1.0 + comm.rank)
        run(comm, buffer, ring.schedule(comm.size))
    weight = torch.full((2,), 1.0 + comm.rank, requires_grad=True)
    above = all_reduce(comm, weight, ring.schedule(comm.size))
    return below.item() / comm.size, list(below.shape), buffer.tolist(), above.tolist(), above.requires_grad


def test_scalars_inference_mode_and_parameters(ranks):
    """The mean of a scalar over two ranks is 1.5, also where no gradients are recorded."""
    assert ranks(2).run(scalars) == [(1.5, [], [3.0] * 3, [3.0, 3.0], False)] * 2


def odd_dtypes(comm):
    xs = [torch.tensor([1, 2, 3]).to(dtype) * (comm.rank + 1) for dtype in (torch.int16, torch.uint8, torch.complex64)]
    return [all_reduce(comm, x, ring.schedule(comm.size)) for x in (*xs, torch.tensor([1 + 2j]).conj())]


def test_any_dtype_that_torch_can_add(ranks):
    for small, byte, wave, turned in ranks(2).run(odd_dtypes):
        assert (small.tolist(), byte.tolist()) == ([3, 6, 9], [3, 6, 9])
        assert (wave.tolist(), turned.tolist()) == ([3, 6, 9], [2 - 4j])


def in_groups(comm, schedule_of):
    """What this rank holds after a sum in each of its groups."""
    groups = [comm.subset(members) for members in ([1, 3], [2, 3], [1, 2, 3], [4, 2, 3, 1])]
    x = torch.tensor([1, 10]) * 10**comm.rank
    return [all_reduce(group, x, schedule_of(group.size)).tolist() for group in groups if group.rank >= 0]


@each_algorithm
def test_groups_without_rank_0(ranks, algorithm):
    """Peers took a group's ranks for the world's: a result of zero, "not part of group", or silence."""
    first, second, third, fourth = [1010, 10100], [1100, 11000], [1110, 11100], [11110, 111100]
    right = [[], [first, third, fourth], [second, third, fourth], [first, second, third, fourth], [fourth]]
    assert ranks(5).run(in_groups, algorithm.schedule) == right


def traced(comm):
    trace, before = Trace("ring"), comm.traffic.copy()
    all_reduce(comm, torch.arange(10.0), ring.schedule(comm.size), trace)
    return trace, (comm.traffic - before).counted.bytes


def test_a_trace_holds_every_action_with_its_bytes(ranks):
    for rank, (trace, sent) in enumerate(ranks(3).run(traced)):
        spans = sorted(trace.spans, key=lambda s: (s.action.batch, s.stream == "in"))
        assert [s.action for s in spans] == list(ring.schedule(3).lanes[rank])
        assert sum(s.nbytes for s in spans if s.action.op is Op.SEND) == sent
        assert all(s.rank == rank and s.end_s >= s.start_s for s in spans)
