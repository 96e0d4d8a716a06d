"""All ranks start from rank 0's model, whatever its dtypes and strides, or hear in words where theirs is another."""

import copy
import pickle

import pytest
import torch
from torch import nn

from lt_core.base.errors import RankError, UserError
from lt_core.data_parallel.replicate import bucketed, naive, overlapped, start

WAYS = {"naive": naive.replicate, "bucketed": bucketed.replicate, "overlapped": overlapped.replicate}
each_way = pytest.mark.parametrize("replicate", WAYS.values(), ids=WAYS)


class Buffers(nn.Module):
    """Buffers that the forward reads and writes."""

    def __init__(self, rank):
        super().__init__()
        self.weight = nn.Parameter(torch.full((2, 3), 2.0 + rank).t())  # strided
        self.register_buffer("scale", torch.full((1, 2), 3.0 + rank))
        self.register_buffer("count", torch.tensor(rank))
        self.register_buffer("mask", torch.tensor([True, False, rank == 0]))

    def forward(self, x):
        self.count += 1
        return ((x * self.mask) @ self.weight * self.scale).sum()


def called_twice(comm, replicate):
    model = Buffers(comm.rank)
    replica = replicate(model, comm)
    started = {name: x.clone() for name, x in model.named_buffers()} | {"weight": model.weight.detach().clone()}
    x = torch.arange(3.0) + comm.rank
    (model(x) + model(x)).backward()
    model.scale += comm.rank  # as batch statistics drift apart
    replica.sync()
    return started, dict(model.named_buffers()), model.weight.grad, model.weight.stride()


@each_way
def test_buffers_of_any_dtype_of_a_module_that_is_called_twice(ranks, replicate):
    """Buffers broadcast before each forward broke a backward through two calls; bool and integer ones the broadcast."""
    for started, buffers, grad, stride in ranks(2).run(called_twice, replicate):
        assert started["weight"].tolist() == [[2.0, 2.0]] * 3 and stride == (1, 3)
        kinds = {"scale": torch.float32, "count": torch.int64, "mask": torch.bool}
        assert kinds == {name: x.dtype for name, x in buffers.items()}
        assert kinds == {name: started[name].dtype for name in kinds}
        assert [started[name].tolist() for name in ("scale", "count", "mask")] == [[[3.0, 3.0]], 0, [True, False, True]]
        assert [buffers[name].tolist() for name in ("scale", "count", "mask")] == [[[3.0, 3.0]], 2, [True, False, True]]
        assert grad.tolist() == [[2 * 3 * x] * 2 for x in (0.5, 0.0, 2.5)]


def shared(comm):
    xs = [torch.arange(7) + comm.rank, torch.ones(0), torch.ones(3, 2).t() * comm.rank, torch.tensor(comm.rank > 0)]
    sent = comm.traffic.copy()
    start.MESSAGE_BYTES, before = 60, start.MESSAGE_BYTES
    start.broadcast(comm, xs, root=1)
    start.MESSAGE_BYTES = before
    return [x.tolist() for x in xs], (comm.traffic - sent).by_law.messages


def test_tensors_travel_in_few_messages(processes):
    for values, messages in processes(2).run(shared):
        assert values == [list(range(1, 8)), [], [[1.0] * 3] * 2, True]
        assert messages in (0, 2)  # 56 bytes, then 25: of the root's


class Own(nn.Module):
    def __init__(self, kind, rank):
        super().__init__()
        shape = (2, 2 + (kind == "shape" and rank))
        self.weight = nn.Parameter(torch.ones(shape), requires_grad=not (kind == "frozen" and rank))
        if kind == "name" and rank:
            self.bias = nn.Parameter(torch.ones(2))
        if kind == "lazy":
            self.layer = nn.LazyLinear(3)
        if kind == "elsewhere":
            self.far = nn.Parameter(torch.ones(2, device="meta"))
        if kind in ("complex64", "float8_e4m3fn"):
            self.odd = nn.Parameter(torch.ones(2).to(getattr(torch, kind)))


def wrong(comm, kind):
    if kind == "no module":
        naive.replicate([torch.ones(2)], comm)
    if kind == "no bucket":
        bucketed.replicate(nn.Linear(1, 1), comm, bucket_bytes=0)
    if kind == "no flat bucket":
        overlapped.replicate(nn.Linear(1, 1), comm, bucket_bytes=0)
    model = Own(kind, comm.rank)
    replica = overlapped.replicate(model, comm)
    if kind == "window":
        with replica.no_sync():
            replica.sync()
    if kind == "thawed on one":
        model.weight.requires_grad_(comm.rank == 0)
    replica.sync(
        {"samples on one": [3, None], "negative": [3, -1], "nan": [float("nan")] * 2}.get(kind, [None] * 2)[comm.rank]
    )


WRONG = {
    "shape": "different parameters; got as number 0: rank 0 has weight (2, 2) torch.float32, rank 1 has weight (2, 3)",
    "frozen": "rank 0 has weight (2, 2) torch.float32, rank 1 has weight (2, 2) torch.float32, frozen",
    "name": "number 1: rank 0 has nothing, rank 1 has bias (2,) torch.float32",
    "lazy": "layer.weight has no shape yet; try: run one forward before you replicate the model",
    "elsewhere": "far is not where the communicator works; got meta; expected cpu; try: model.to('cpu')",
    "complex64": "a mean needs fractions; got odd (2,) torch.complex64; expected a floating dtype of at least 16 bits",
    "float8_e4m3fn": "a mean needs fractions; got odd (2,) torch.float8_e4m3fn; expected a floating dtype",
    "no module": "only a module can be replicated; got list; expected a torch.nn.Module",
    "no bucket": "buckets of 0 bytes hold nothing; try: bucket_bytes=26214400",
    "no flat bucket": "buckets of 0 bytes hold nothing; try: bucket_bytes=26214400",
    "window": "sync within no_sync; try: leave the window before the last backward of the step",
    "thawed on one": "weight is frozen on 1 of 2 ranks; expected requires_grad alike on every rank",
    "samples on one": "sync was told the samples of 1 ranks; expected those of all 2, or of none",
    "negative": "these are no samples; got -1; expected how many of them this rank had, 0 or more",
    "nan": "these are no samples; got nan",
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_is_said(ranks, kind):
    with pytest.raises(RankError) as error:
        ranks(2).run(wrong, kind)
    assert WRONG[kind] in error.value.message


def again(comm, replicate):
    """A notebook's cell that is run twice."""
    model = nn.Linear(2, 1, bias=False)
    first = overlapped.replicate(model, comm)
    with pytest.raises(UserError) as said:
        replicate(model, comm)
    first.close()
    replica = replicate(model, comm)
    first.close()
    model(torch.full((1, 2), comm.rank + 1.0)).sum().backward()
    replica.sync()
    replica.close()
    return str(said.value), model.weight.grad.tolist()


@each_way
def test_a_second_replica_while_another_takes_the_gradients(ranks, replicate):
    """Its hooks took them all, and each sync of the second gave None: a training that never moved, without a word."""
    words = (
        "weight belongs to an overlapped replica, which would take its gradients from this one; "
        "expected one replica at a time; try: close() the other one first, or a new model"
    )
    assert ranks(2).run(again, replicate) == [(words, [[1.5, 1.5]])] * 2


def copies(comm, replicate):
    """What copying and pickling come to, and whether a copy of the model stands alone."""
    model, said = nn.Linear(2, 1), []
    replica = replicate(model, comm)
    for way in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(UserError) as error:
            way(replica)
        said.append(str(error.value))
    apart = copy.deepcopy(model)
    apart(torch.ones(1, 2)).sum().backward()
    replica.close()
    return set(said), apart.weight.grad.tolist(), model.weight.grad


@each_way
def test_a_replica_is_not_copied_but_its_parts_are(ranks, replicate):
    words = "a replica can be neither copied nor pickled; try: copy.deepcopy(replica.model), and replica.state_dict()"
    assert ranks(2).run(copies, replicate) == [({words}, [[1.0, 1.0]], None)] * 2
