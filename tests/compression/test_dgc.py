"""DGC is momentum SGD when nothing waits and nothing is masked, and plain SGD when all is masked; nothing gets lost."""

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.collectives import Mean
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
