"""DGC is momentum SGD when nothing waits and nothing is masked, and plain SGD when all is masked; nothing gets lost."""

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.collectives import Mean
from lt_core.comm import threads
from lt_core.compression import MomentumCorrection, TopK, deep_gradient_compression, warm_up
from tests.compression.alone import once, steps

GRADIENTS = [{"w": torch.tensor([1.0, -2.0, 3.0, 0.5], dtype=torch.float64) * (k + 1)} for k in range(6)]


def means(reducer):
    return [got.mean["w"] for got in steps(lambda: reducer, GRADIENTS)]


@pytest.mark.parametrize("nesterov", [False, True])
def test_without_masking_and_all_sent_it_is_momentum_sgd(nesterov):
    w = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    sgd, moved = torch.optim.SGD([w], lr=1.0, momentum=0.9, nesterov=nesterov), torch.zeros(4, dtype=torch.float64)
    for grads, mean in zip(GRADIENTS, means(MomentumCorrection(Mean(), 0.9, masking=False, nesterov=nesterov))):
        w.grad = grads["w"].clone()
        sgd.step()
        moved -= mean
        assert torch.allclose(moved, w.detach(), rtol=1e-14, atol=0)


def test_with_masking_and_all_sent_it_is_plain_sgd():
    assert all(torch.equal(mean, grads["w"]) for mean, grads in zip(means(MomentumCorrection(Mean(), 0.9)), GRADIENTS))


def test_what_waits_and_what_was_sent_are_all_velocities():
    reducer = MomentumCorrection(TopK(0.25), 0.9, masking=False)
    sent, u, total = sum(means(reducer)), 0.0, 0.0
    for grads in GRADIENTS:
        u = 0.9 * u + grads["w"]
        total = total + u
    assert torch.allclose(sent + reducer.state_dict()["waiting"]["w"], total, rtol=1e-13, atol=0)


def test_what_was_sent_stops_and_the_rest_goes_on_moving():
    reducer = MomentumCorrection(TopK(0.25), 0.9)
    means(reducer)
    state = reducer.state_dict()
    sent = int(state["waiting"]["w"].eq(0).nonzero())
    assert state["velocity"]["w"][sent] == 0 and state["velocity"]["w"].count_nonzero() == 3


def clipped_norm(comm, factor):
    x = factor * torch.tensor([3.0, 4.0])
    return deep_gradient_compression(1.0, 0.9, clip=1.0).reduce({"w": x}, comm).sent["w"].norm().item()


def test_each_rank_clips_to_its_part_of_the_norm(ranks):
    group = ranks(4)
    assert group.run(clipped_norm, 1.0) == pytest.approx([0.5] * 4)
    assert group.run(clipped_norm, 0.01) == pytest.approx([0.05] * 4)
    assert group.run(clipped_norm, 0.0) == [0.0] * 4


def masked(comm):
    """The velocity of two elements, of which rank 0 sends the first and the others the second."""
    x = torch.tensor([0.25, 1.0] if comm.rank else [1.0, 0.25]).bfloat16()
    reducer = deep_gradient_compression(0.5)
    reducer.reduce({"x": x}, comm)
    return reducer.state_dict()["velocity"]["x"].tolist()


def test_what_rounding_took_from_a_mean_has_not_been_sent():
    """A third is none in bfloat16: what is left waits on all ranks, but who sent nothing of it moves on."""
    assert threads.run(masked, 3, (), 20) == [[0.0, 0.25], [0.25, 0.0], [0.25, 0.0]]


def in_buckets(comm, cut):
    """The norms of what was sent of (3, 4) and (6, 8) in one bucket, or of each in its own."""
    grads = {"a": torch.tensor([3.0, 4.0]), "b": torch.tensor([6.0, 8.0])}
    reducer = deep_gradient_compression(1.0, 0.0, clip=1.0)
    buckets = [{name: grads[name]} for name in grads] if cut else [grads]
    return [torch.cat([*reducer.reduce(bucket, comm).sent.values()]).norm().item() for bucket in buckets]


def test_a_clip_is_of_a_bucket_so_that_several_take_more_than_the_whole():
    """As its words say: two buckets of clip 1 are a gradient of up to the root of 2."""
    assert threads.run(in_buckets, 1, (False,))[0] == pytest.approx([1.0])
    assert threads.run(in_buckets, 1, (True,))[0] == pytest.approx([1.0, 1.0])
    assert threads.run(in_buckets, 4, (True,))[3] == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("inside", [True, False])
def test_weight_decay_belongs_inside(inside):
    """Momentum SGD adds it to the gradient, so it gathers momentum; taken off the weights afterwards it has none."""
    start = torch.tensor([1.0, -2.0, 3.0, 0.5], dtype=torch.float64)
    w, ours = start.clone().requires_grad_(), start.clone()
    sgd, reducer, apart = (
        torch.optim.SGD([w], lr=0.1, momentum=0.9, weight_decay=0.2),
        MomentumCorrection(Mean(), 0.9, masking=False),
        [],
    )
    for grads in GRADIENTS:
        w.grad = grads["w"].clone()
        sgd.step()
        decay = 0.2 * ours
        mean = once(reducer, w=grads["w"] + decay * inside)["w"]
        ours = ours - 0.1 * (mean + decay * (not inside))
        apart.append(float((ours - w.detach()).abs().max()))
    assert max(apart) < 1e-13 if inside else max(apart) > 1e-2


def test_the_warm_up():
    ratio = warm_up(10)
    assert [ratio(k) for k in (0, 9, 10, 20, 30, 39, 40, 1000)] == [
        0.25, 0.25, 0.0625, 0.015625, 0.00390625, 0.00390625, 0.001, 0.001,
    ]  # fmt: skip
    assert int(once(deep_gradient_compression(ratio), w=torch.arange(1.0, 101))["w"].count_nonzero()) == 25


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: MomentumCorrection(Mean(), 1.0), "momentum; got 1.0; expected from 0 up to below 1"),
        (lambda: MomentumCorrection(Mean(), clip=0), "a norm to clip to; got 0; expected above 0, or None"),
        (lambda: warm_up(0), "an epoch has steps; got 0; expected at least 1"),
        (lambda: warm_up(1, last=0), "the part that is sent; got 0"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises(UserError, match=words):
        make()
