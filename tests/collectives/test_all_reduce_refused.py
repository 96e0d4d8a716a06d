"""What cannot be summed is refused on every rank, in words; an error of one rank ends all."""

import pytest
import torch

from lt_core.base.errors import Misuse, RankError, ScheduleError, UserError
from lt_core.base.trace import Trace
from lt_core.collectives import Scratch, all_reduce, ring, run
from tests.typed import typed


class Full(Scratch):
    """A machine whose memory is used up."""

    def piece(self, like):
        raise MemoryError("nothing left")


def broken(comm, trace):
    run(comm, torch.zeros(6), ring.schedule(comm.size), trace, scratch=Full() if comm.rank == 1 else None)


@pytest.mark.parametrize("trace", [None, Trace("ring")], ids=["", "traced"])
def test_an_error_of_one_rank_ends_the_others_at_once(ranks, trace):
    with pytest.raises(RankError) as error:
        ranks(3).run(broken, trace)
    assert (error.value.rank, error.value.kind, error.value.message) == (1, "MemoryError", "nothing left")


def wrong_dtype(comm, dtype):
    all_reduce(comm, torch.zeros(3, dtype=dtype), ring.schedule(comm.size))


@pytest.mark.parametrize("dtype", [torch.bool, torch.float8_e4m3fn, torch.uint32])
def test_a_dtype_without_a_sum_is_refused(ranks, dtype):
    with pytest.raises(RankError) as error:
        ranks(2).run(wrong_dtype, dtype)
    assert f"ring: this dtype has no sum; got {dtype}; expected one that torch can add" in error.value.message


def wrong_size(comm):
    all_reduce(comm, torch.zeros(3), ring.schedule(3))


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
