"""A buffer is zeros in one dimension on every communicator, and every verb takes it."""

import pytest
import torch

from lt_core.base.cluster import Wire
from lt_core.base.errors import RankError
from lt_core.comm.buffers import allocate, free
from lt_core.comm.shaped import shaped
from lt_core.comm.threads import run
from tests.sharing import on_all


@on_all
def test_a_buffer_is_zeros(ranks):
    def fn(comm):
        x, none = allocate(comm, 5, torch.int64), allocate(comm, 0)
        zeros = x.tolist()
        x += torch.arange(5) + comm.rank
        comm.all_reduce(x)
        free(comm, x)
        return zeros, x.tolist(), none.shape, none.dtype, x.device == comm.device

    assert ranks(2).run(fn) == [([0] * 5, [1, 3, 5, 7, 9], (0,), torch.float32, True)] * 2


def test_a_buffer_over_shaped_wires_is_that_of_the_communicator_beneath():
    given = run(lambda comm: allocate(shaped(comm, Wire("fast", 0.0, 1e12)), 3).tolist(), 2)
    assert given == [[0.0] * 3] * 2


@pytest.mark.parametrize(
    ("elements", "dtype", "words"),
    [
        (-1, torch.float32, "a buffer has elements; got -1; expected 0 or more"),
        (2.5, torch.float32, "a buffer has elements; got 2.5; expected 0 or more"),
        (2, "float", "the elements of a buffer have a dtype; got 'float'; expected a torch.dtype; try: torch.float32"),
    ],
)
def test_what_is_no_buffer(elements, dtype, words):
    """Half an element failed on rank 0 alone, where it made the memory, and left the others waiting."""
    with pytest.raises(RankError) as caught:
        run(lambda comm: allocate(comm, elements, dtype), 1)
    assert words in str(caught.value)
