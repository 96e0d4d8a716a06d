"""An all-reduce to the mean: the sum, divided once, to the bit, on every back end and whichever way the tensor goes."""

import pytest
import torch

from lt_core.base.cluster import Wire
from lt_core.base.errors import Mismatch, UserError
from lt_core.comm.shaped import shaped
from lt_core.comm.sums import divider
from tests.comm.shared_memory.test_verbs import STAGE_BYTES, WAYS, placed, run, same, total, values

FLOATS = [torch.float64, torch.float32, torch.bfloat16, torch.float16]
WORDS = "all_reduce: integers have no mean among them; got torch.int64; expected a floating dtype; "
WORDS += "try: y = x.double(), and the mean of y"


def mean_of(xs):
    """What the sum of all gives when it is divided."""
    return total(xs) / len(xs)


def to_the_mean(comm, x):
    comm.all_reduce(x, mean=True)
    return x


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_it_has_the_bits_of_a_sum_that_is_divided(ranks, size, dtype):
    def fn(comm):
        xs = [values(r, 1001, dtype) for r in range(comm.size)]
        summed = xs[comm.rank].clone()
        comm.all_reduce(summed)
        return same(to_the_mean(comm, xs[comm.rank].clone()), summed / comm.size)

    assert ranks(size).run(fn) == [True] * size


@pytest.mark.parametrize("size", [1, 2, 3, 6, 8])
def test_in_shared_memory_however_large_and_wherever_it_lies(size):
    def fn(comm):
        xs = [[values(r, n) for r in range(comm.size)] for n in (1, 7, 1023, 3 * STAGE_BYTES // 8 + 5)]
        return [same(mean_of(x), to_the_mean(comm, placed(comm, x[comm.rank], way))) for x in xs for way in WAYS]

    assert all(map(all, run(fn, size)))


@pytest.mark.parametrize("size", [2, 3])
def test_what_falls_below_the_smallest_normal_number_is_rounded_once(ranks, size):
    """A share that is taken of each addend would round each: of three smallest numbers a half is two, not three."""

    def fn(comm):
        smallest = torch.tensor([2.0**-149])
        return to_the_mean(comm, 3 * smallest * (comm.rank == 0)) / smallest

    assert [x.item() for x in ranks(size).run(fn)] == [{2: 2.0, 3: 1.0}[size]] * size


def test_begun_it_is_divided_once_however_often_it_is_waited_for(processes):
    def fn(comm):
        x = torch.full((5,), 3.0 + comm.rank)
        work = comm.start("all_reduce", x, True)
        work.wait()
        work.wait()
        return x.tolist(), work.span()[0] <= work.span()[1]

    assert processes(2).run(fn) == [([3.5] * 5, True)] * 2


def test_tensors_of_either_kind_can_be_written(ranks):
    def fn(comm):
        parameter = torch.nn.Parameter(torch.full((3,), 2.0 * comm.rank))
        with torch.inference_mode():
            made = torch.full((3,), 2.0 * comm.rank)
        return [to_the_mean(comm, x).tolist() for x in (parameter, made)]

    assert ranks(2).run(fn) == [[[1.0] * 3] * 2] * 2


def test_over_a_shaped_wire_it_takes_the_time_of_a_sum(ranks):
    def fn(comm):
        wire, xs = shaped(comm, Wire("slow", 1e-3, 1e6)), [torch.full((500,), 2.0 * comm.rank) for _ in range(2)]
        works = [wire.start("all_reduce", x, *mean) for x, mean in zip(xs, ((), (True,)), strict=True)]
        for work in works:
            work.wait()
        spans = [end_s - start_s for start_s, end_s in (work.span() for work in works)]
        return spans, [x.unique().tolist() for x in xs]

    for spans, found in ranks(2).run(fn):
        assert all(seconds >= 4e-3 - 1e-9 for seconds in spans)  # two rounds of half of 2,000 bytes
        assert found == [[2.0], [1.0]]


def test_a_mean_of_integers_is_refused(ranks):
    def fn(comm):
        with pytest.raises(UserError) as caught:
            comm.all_reduce(torch.ones(3, dtype=torch.int64), mean=True)
        return str(caught.value)

    assert ranks(2).run(fn) == [WORDS] * 2


def test_a_mean_here_and_a_sum_there_is_named(ranks):
    def fn(comm):
        with pytest.raises(Mismatch) as caught:
            comm.all_reduce(torch.ones(4), mean=comm.rank == 1)
        return str(caught.value)

    for text in ranks(2).run(fn):
        assert "rank 0 calls all_reduce of (4,) float32" in text
        assert "rank 1 calls all_reduce to the mean of (4,) float32" in text


@pytest.mark.parametrize("size", range(1, 9))
def test_the_divider_divides(size):
    for dtype in FLOATS:
        x = torch.cat([values(0, 999, dtype), torch.tensor([0.0, -0.0, float("inf"), torch.finfo(dtype).tiny / 2])])
        x = x.to(dtype)
        assert same(divider(size, x)(x.clone()), x / size)
