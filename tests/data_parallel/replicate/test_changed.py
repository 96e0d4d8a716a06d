"""A model that changes behind its replica's back, and arguments that are none, are refused in words."""

import pytest
import torch
from torch import nn

from lt_core.base.errors import RankError
from lt_core.comm import threads
from lt_core.compression import TopK
from lt_core.data_parallel import local_sgd
from lt_core.data_parallel.replicate import bucketed, naive, overlapped
from tests.data_parallel.replicate.ways import SMALL, each_way


def said(fn, *args):
    """What two ranks hear."""
    with pytest.raises(RankError) as error:
        threads.run(fn, 2, args, 20)
    assert error.value.kind == "UserError"
    return error.value.message


def step(model, replica, dtype=torch.float32):
    model(torch.ones(2, 3, dtype=dtype)).sum().backward()
    replica.sync()


def with_another(comm, replicate, replaced):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    replica = replicate(model, comm)
    model.add_module("1" if replaced else "late", nn.Linear(3, 3))
    step(model, replica)


@each_way
@pytest.mark.parametrize(("replaced", "name"), [(False, "late.weight"), (True, "1.weight")])
def test_a_parameter_that_came_later_is_not_trained_apart(replicate, replaced, name):
    """Each rank went on with a gradient of its own, and nobody was told."""
    words = f"{name} came after the model was replicated; try: close this replica, and replicate the model again"
    assert words in said(with_another, replicate, replaced)


def with_others_that_are_not_trained(comm, replicate):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    replica = replicate(model, comm)
    model.register_module("late", nn.Linear(1, 1).requires_grad_(False))
    del model[1]
    model.register_parameter("unused", nn.Parameter(torch.ones(1)))
    model[0](torch.full((1, 3), comm.rank + 1.0)).sum().backward()
    replica.sync()
    return model[0].weight.grad.tolist()


@each_way
def test_what_came_later_and_learns_nothing_is_no_matter(replicate):
    assert threads.run(with_others_that_are_not_trained, 2, (replicate,), 20) == [[[1.5] * 3] * 3] * 2


def converted(comm, kind):
    model = nn.Linear(3, 4)
    replica = overlapped.replicate(model, comm, bucket_bytes=SMALL)
    if kind == "dtype":
        model.double()
    else:
        model.weight.data, model.bias.data = torch.ones(5, 3), torch.ones(5)
    step(model, replica, model.weight.dtype)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("dtype", "got (4,) torch.float64 on cpu; expected (4,) torch.float32 on cpu"),
        ("shape", "got (5,) torch.float32 on cpu; expected (4,) torch.float32 on cpu"),
    ],
)
def test_a_gradient_that_fits_no_bucket(kind, change):
    """One of another shape made the view in the bucket longer, into its neighbour's memory."""
    words = f"the gradient of bias has changed since the model was replicated; {change}; try: replicate the model after"
    assert words in said(converted, kind)


def closed(comm):
    replica = overlapped.replicate(nn.Linear(3, 3), comm, TopK(1.0))
    step(replica.model, replica)
    replica.close()
    replica.close()
    step(replica.model, replica)


def test_a_closed_replica_has_no_thread():
    assert "this replica was closed, and its reducer's thread has ended; try: replicate again" in said(closed)


def not_a_reducer(comm, way, reducer):
    way(nn.Linear(3, 3), comm, reducer=reducer)


@pytest.mark.parametrize(
    "way",
    [naive.replicate, bucketed.replicate, overlapped.replicate, lambda *a, **k: local_sgd.replicate(*a, 2, **k)],
    ids=["naive", "bucketed", "overlapped", "local"],
)
def test_what_is_no_reducer(way):
    words = "this makes no mean of gradients; got {}; expected a reducer; try: TopK(0.01), with its arguments"
    for reducer, got in ((TopK, "the class TopK"), (0.01, "float")):
        assert words.format(got) in said(not_a_reducer, way, reducer)


def told(comm, samples):
    model = nn.Linear(3, 1, bias=False)
    model(torch.ones(2, 3)).sum().backward()
    naive.replicate(model, comm).sync(samples)
    return model.weight.grad.tolist()


def test_samples_are_a_number():
    for samples, got in ((torch.ones(2, 3), "Tensor"), ([1, 2], "list"), ("many", "str")):
        words = f"these are no samples; got {got}; expected how many of them this rank had, 0 or more; try: len(batch)"
        assert words in said(told, samples)
    assert threads.run(told, 2, (torch.tensor(2),), 20) == [[[1.0] * 3]] * 2


class Expanded(nn.Module):
    """One row of numbers, shown as four."""

    def __init__(self, rank):
        super().__init__()
        self.register_buffer("mask", (torch.arange(3.0) + rank).expand(4, 3))


@each_way
def test_a_buffer_that_shows_few_elements_as_many_becomes_rank_0s(replicate):
    """It could not be written to: several elements lie in one place."""

    def start(comm):
        model = Expanded(comm.rank)
        replicate(model, comm).sync()
        return model.mask.tolist(), model.mask.stride()

    assert threads.run(start, 2, (), 20) == [([[0.0, 1.0, 2.0]] * 4, (0, 1))] * 2
