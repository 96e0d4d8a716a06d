"""The mean of a bucket: one message a dtype, names and shapes and dtypes back, the same bits on every rank."""

import pytest
import torch

from lt_core.base.errors import RankError, UserError
from lt_core.collectives import Mean, naive, ring

BY = {"native": None, "naive": naive.schedule, "ring": ring.schedule}


def bucket(rank):
    return {
        "weight": torch.arange(6.0, dtype=torch.float64).view(2, 3).t() * (rank + 1),
        "half": torch.full((3,), float(rank), dtype=torch.bfloat16),
        "bias": torch.tensor([rank, 10.0 * rank], dtype=torch.float64),
        "none": torch.ones(0, 3, dtype=torch.float64),
        "scale": torch.tensor(rank + 0.5, dtype=torch.float64),
    }


def reduced(comm, by):
    grads, before = bucket(comm.rank), comm.traffic.copy()
    mean, sent = Mean(by).reduce(grads, comm)
    assert list(sent) == list(grads)
    assert all(torch.equal(sent[name], x) and torch.equal(x, bucket(comm.rank)[name]) for name, x in grads.items())
    return mean, comm.traffic - before


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("by", BY.values(), ids=BY)
def test_mean_of_each_tensor_in_its_shape_and_dtype(ranks, by, size):
    for mean, _ in ranks(size).run(reduced, by):
        assert list(mean) == list(bucket(0))
        for name, x in mean.items():
            expected = sum(bucket(r)[name].double() for r in range(size)) / size
            assert (x.shape, x.dtype) == (expected.shape, bucket(0)[name].dtype)
            assert torch.equal(x.double(), expected)


def test_a_bucket_is_one_message_a_dtype(ranks):
    for _, traffic in ranks(2).run(reduced, naive.schedule):
        assert traffic.counted.messages == 2
        assert traffic.counted.bytes == (6 + 2 + 0 + 1) * 8 + 3 * 2


def thirds(comm, by):
    return Mean(by).reduce({"x": torch.full((5,), float(comm.rank == 0), dtype=torch.float64)}, comm).mean["x"]


@pytest.mark.parametrize("by", BY.values(), ids=BY)
def test_the_sum_is_divided_once(ranks, by):
    for mean in ranks(3).run(thirds, by):
        assert torch.equal(mean, torch.full((5,), 1.0, dtype=torch.float64) / 3)


def many(comm):
    mean, before = Mean(ring.schedule), comm.traffic.copy()
    first = mean.reduce({"a": torch.ones(4)}, comm)
    by_law = (comm.traffic - before).by_law.messages
    again, other = mean.reduce({"a": torch.ones(4)}, comm), mean.reduce({"b": torch.ones(2, 2)}, comm)
    nothing = mean.reduce({}, comm)
    return first.mean["a"].tolist(), again.mean["a"].tolist(), other.mean["b"].shape, nothing, by_law


def test_many_buckets_pass_through_one_reducer(ranks):
    for first, again, shape, nothing, by_law in ranks(2).run(many):
        assert first == again == [1.0] * 4
        assert shape == (2, 2)
        assert nothing == ({}, {})
        assert by_law > 0  # the ranks compared what they bring, once


def differing(comm, kind):
    x = torch.ones(2, 3)
    here = {"a": x, "b": x}
    there = {
        "order": {"b": x, "a": x},
        "shape": {"a": x.t(), "b": x},
        "dtype": {"a": x.double(), "b": x},
        "fewer": {"a": x},
    }
    Mean(ring.schedule).reduce(here if comm.rank == 0 else there[kind], comm)


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("order", "rank 0 has a (2, 3) torch.float32, rank 1 has b (2, 3) torch.float32"),
        ("shape", "rank 0 has a (2, 3) torch.float32, rank 1 has a (3, 2) torch.float32"),
        ("dtype", "rank 0 has a (2, 3) torch.float32, rank 1 has a (2, 3) torch.float64"),
        ("fewer", "number 1: rank 0 has b (2, 3) torch.float32, rank 1 has nothing"),
    ],
)
def test_ranks_that_bring_different_buckets_are_told(ranks, kind, shown):
    """A gradient was missing on one rank, and the error did not say of which parameter."""
    with pytest.raises(RankError) as error:
        ranks(2).run(differing, kind)
    assert error.value.kind == "Mismatch"
    assert shown in error.value.message
    assert "go through model.named_parameters() on every rank" in error.value.message


def integers(comm):
    Mean().reduce({"count": torch.tensor([1, 2])}, comm)


def test_integers_have_no_mean(ranks):
    with pytest.raises(RankError) as error:
        ranks(2).run(integers)
    assert "a mean needs fractions; got count (2,) torch.int64; expected a floating dtype" in error.value.message


def test_a_mean_has_no_past():
    mean = Mean()
    assert mean.state_dict() == {}
    mean.load_state_dict({})
    with pytest.raises(UserError, match="a mean remembers nothing; got a state with residual; expected an empty one"):
        mean.load_state_dict({"residual": 1})
