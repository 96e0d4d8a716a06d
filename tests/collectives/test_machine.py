"""The machine runs any schedule on any tensor: what is exact, what is refused, what stands where."""

import pytest
import torch

from lt_core.base.action import Op
from lt_core.base.errors import Misuse, RankError, ScheduleError, UserError
from lt_core.base.trace import Trace
from lt_core.base.traffic import Traffic
from lt_core.collectives import ALGORITHMS, Prepared, Scratch, all_reduce, naive, of_rounds, ring, run
from lt_core.collectives.checks import units
from lt_core.collectives.machine import Machine
from lt_core.collectives.rounds import ADD, COPY, Message
from tests.typed import typed


class Wire:
    """A communicator of two, seen from rank 0: notes where each message lands and lets `arrives` come in."""

    rank, size, device, backend, timeout_s = 0, 2, torch.device("cpu"), "none", 1.0

    def __init__(self, arrives):
        self.traffic, self.arrives, self.landed, self.sent, self.aborted = Traffic(), arrives, [], [], ""

    def exchange(self, sends, receives):
        self.sent += [x.tolist() for x, _ in sends]
        for buffer, _ in receives:
            buffer.copy_(torch.full_like(buffer, self.arrives))
            self.landed.append(buffer)

    def abort(self, reason):
        self.aborted = reason


def turn(wire, flat, cut, schedule, in_turn=True, scratch=None):
    """Run rank 0's lane."""
    exchanges = schedule.exchanges(0)
    machine = Machine(wire, flat, cut, exchanges, in_turn, scratch)
    for actions in exchanges:
        machine.run(actions)


def test_units_cut_the_tensor():
    machine = Machine(Wire(0), torch.arange(10), 4, [], in_turn=True)
    pieces = [
        machine.part(a).tolist() for a in of_rounds("all", 2, [[Message(0, 1, u, ADD) for u in range(4)]]).lanes[0]
    ]
    assert pieces == [[0, 1], [2, 3, 4], [5, 6], [7, 8, 9]]


def test_a_schedule_cuts_up_to_its_last_unit():
    assert [units(s) for s in (ring.schedule(1), ring.schedule(4), naive.schedule(4))] == [1, 4, 4]


def test_what_is_kept_lands_in_its_place():
    wire, flat = Wire(9), torch.arange(4)
    turn(wire, flat, 2, of_rounds("keep", 2, [[Message(0, 1, 0, COPY), Message(1, 0, 1, COPY)]]))
    assert flat.tolist() == [0, 1, 9, 9]
    assert wire.landed[0].data_ptr() == flat[2:].data_ptr()


def test_what_is_added_lands_in_one_buffer_in_all_rounds():
    wire, flat = Wire(1), torch.zeros(6, dtype=torch.int64)
    turn(wire, flat, 3, of_rounds("add", 2, [[Message(1, 0, unit, ADD)] for unit in range(3)]))
    assert flat.tolist() == [1] * 6
    assert len({buffer.data_ptr() for buffer in wire.landed}) == 1


def test_what_may_arrive_at_once_has_memory_of_its_own():
    wire, adds = Wire(1), of_rounds("add", 2, [[Message(1, 0, unit, ADD)] for unit in range(3)])
    turn(wire, torch.zeros(6), 3, adds, in_turn=False)
    assert len({buffer.data_ptr() for buffer in wire.landed}) == 3


def test_uneven_chunks_still_need_one_buffer():
    wire = Wire(1)
    turn(wire, torch.zeros(10), 4, of_rounds("add", 2, [[Message(1, 0, unit, ADD)] for unit in range(4)]))
    assert [len(buffer) for buffer in wire.landed] == [2, 3, 2, 3]
    assert len({buffer.data_ptr() for buffer in wire.landed}) == 1


def test_a_kept_scratch_is_used_again():
    wire, scratch, take = Wire(1), Scratch(), of_rounds("add", 2, [[Message(1, 0, 0, ADD)]])
    for dtype in (torch.float32, torch.float32, torch.int64):
        turn(wire, torch.zeros(6, dtype=dtype), 3, take, scratch=scratch)
    first, second, third = wire.landed
    assert first.data_ptr() == second.data_ptr() != third.data_ptr()
    assert third.dtype == torch.int64


def test_what_a_round_still_sends_is_not_overwritten_by_what_it_takes():
    wire, flat = Wire(9), torch.arange(4)
    turn(wire, flat, 1, of_rounds("swap", 2, [[Message(0, 1, 0, COPY), Message(1, 0, 0, COPY)]]))
    assert wire.sent == [[0, 1, 2, 3]]
    assert wire.landed[0].data_ptr() != flat.data_ptr()
    assert flat.tolist() == [9, 9, 9, 9]


def test_a_message_without_elements_is_not_sent():
    wire = Wire(1)
    turn(wire, torch.zeros(1), 2, of_rounds("add", 2, [[Message(0, 1, 0, ADD), Message(1, 0, 0, ADD)]]))
    assert wire.sent == wire.landed == []


def test_its_abort_is_the_communicators():
    wire = Wire(0)
    Machine(wire, torch.zeros(1), 1, [], in_turn=True).abort("rank 3 is gone")
    assert wire.aborted == "rank 3 is gone"


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


class Full(Scratch):
    """A machine whose memory is used up."""

    def piece(self, like):
        raise MemoryError("nothing left")


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


def broken(comm, trace):
    run(comm, torch.zeros(6), ring.schedule(comm.size), trace, scratch=Full() if comm.rank == 1 else None)


@pytest.mark.parametrize("trace", [None, Trace("ring")], ids=["", "traced"])
def test_an_error_of_one_rank_ends_the_others_at_once(ranks, trace):
    with pytest.raises(RankError) as error:
        ranks(3).run(broken, trace)
    assert (error.value.rank, error.value.kind, error.value.message) == (1, "MemoryError", "nothing left")


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


def wrong_size(comm):
    all_reduce(comm, torch.zeros(3), ring.schedule(3))


def odd_dtypes(comm):
    xs = [torch.tensor([1, 2, 3]).to(dtype) * (comm.rank + 1) for dtype in (torch.int16, torch.uint8, torch.complex64)]
    return [all_reduce(comm, x, ring.schedule(comm.size)) for x in (*xs, torch.tensor([1 + 2j]).conj())]


def test_any_dtype_that_torch_can_add(ranks):
    for small, byte, wave, turned in ranks(2).run(odd_dtypes):
        assert (small.tolist(), byte.tolist()) == ([3, 6, 9], [3, 6, 9])
        assert (wave.tolist(), turned.tolist()) == ([3, 6, 9], [2 - 4j])


def wrong_dtype(comm, dtype):
    all_reduce(comm, torch.zeros(3, dtype=dtype), ring.schedule(comm.size))


@pytest.mark.parametrize("dtype", [torch.bool, torch.float8_e4m3fn, torch.uint32])
def test_a_dtype_without_a_sum_is_refused(ranks, dtype):
    with pytest.raises(RankError) as error:
        ranks(2).run(wrong_dtype, dtype)
    assert f"ring: this dtype has no sum; got {dtype}; expected one that torch can add" in error.value.message


def wrong_buffer(comm):
    run(comm, torch.zeros(3, 2).t(), ring.schedule(comm.size))


def twins(comm):
    run(comm, torch.zeros(3), typed("0: 0SEND0>1 0SEND0>1\n1: 0ADD0<0 0ADD0<0"))


def crossed(comm):
    run(comm, torch.arange(4.0), typed("0: 0SEND0>1 1SEND1>1\n1: 1ADD1<0 0ADD0<0"))


def no_messages(comm):
    run(comm, torch.zeros(3), typed("0: 0F0\n1: 0F0"))


def no_schedule(comm):
    all_reduce(comm, torch.zeros(3), ring.schedule)


def sparse(comm):
    all_reduce(comm, torch.eye(3).to_sparse(), ring.schedule(comm.size))


def no_tensor(comm):
    all_reduce(comm, [1.0, 2.0], ring.schedule(comm.size))


def wrong_cut(comm):
    run(comm, torch.zeros(3), ring.schedule(comm.size), cut=1)


@pytest.mark.parametrize(
    ("fn", "kind", "text"),
    [
        (wrong_size, UserError, "ring is a schedule for 3 ranks; got 2 ranks in this communicator; expected 3"),
        (twins, ScheduleError, "typed: 0SEND0>1 of rank 0 occurs twice"),
        (crossed, ScheduleError, "typed: 0SEND0>1 of rank 0 waits for ever"),  # it ran, and chunks were exchanged
        (no_messages, UserError, "typed is no collective; got 0F0 of rank 0; expected SEND, ADD and COPY alone"),
        (no_schedule, UserError, "a collective runs a schedule; got function; expected a Schedule; try: ring.sched"),
        (sparse, UserError, "a collective takes ordinary tensors; got torch.sparse_coo; expected torch.strided"),
        (no_tensor, UserError, "a collective takes tensors; got list; expected a torch.Tensor"),
        (wrong_cut, UserError, "ring has 2 units; got a tensor cut in 1; expected at least 2"),
        (wrong_buffer, Misuse, "ring: the tensor is strided; got shape"),
    ],
)
def test_what_cannot_work_is_refused(ranks, fn, kind, text):
    with pytest.raises(RankError) as error:
        ranks(2).run(fn)
    assert error.value.kind == kind.__name__
    assert text in error.value.message
