"""Local SGD: synchronous training at H = 1, plain training alone, and a mean of weights in between."""

import copy

import pytest
import torch
from torch import nn

from lt_core.base.errors import RankError, UserError
from lt_core.comm import threads
from lt_core.data_parallel import local_sgd
from lt_core.data_parallel.replicate import bucketed

STEPS = 30


def model_of():
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 1)).double()
    generator = torch.Generator().manual_seed(0)
    for p in model.parameters():
        p.data = torch.randn(p.shape, generator=generator, dtype=torch.float64)
    return model.eval()


def batch(rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(8, 3, generator=generator, dtype=torch.float64)


def sgd(momentum):
    def make(model):
        velocity = [torch.zeros_like(p) for p in model.parameters()]

        def step():
            for p, v in zip(model.parameters(), velocity):
                p -= 0.05 * v.mul_(momentum).add_(p.grad)

        return step

    return make


def adam(model):
    first, second = ([torch.zeros_like(p) for p in model.parameters()] for _ in range(2))

    def step():
        for p, m, v in zip(model.parameters(), first, second):
            m.lerp_(p.grad, 0.1)
            v.lerp_(p.grad**2, 0.1)
            p -= 0.05 * m / (v.sqrt() + 1e-8)

    return step


def trained(comm, way, optimizer, steps=STEPS):
    """The weights after each step."""
    model = model_of()
    replica, step, weights = way(model, comm) if way else None, optimizer(model), []
    for number in range(steps):
        model.zero_grad()
        (model(batch(comm.rank, number)) ** 2).mean().backward()
        if replica:
            replica.sync()
        with torch.no_grad():
            step()
        getattr(replica, "average", lambda: None)()
        weights.append(torch.cat([p.detach().reshape(-1) for p in model.parameters()]))
    return weights


def local(every, first=0):
    return lambda model, comm: local_sgd.replicate(model, comm, every, first)


def apart(ours, theirs):
    return max((a - b).abs().max().item() for a, b in zip(ours, theirs))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_a_mean_after_every_step_is_synchronous_training(ranks, momentum):
    """Momentum stays local, and it is still so: both are linear."""
    for ours, theirs in zip(*(ranks(3).run(trained, way, sgd(momentum)) for way in (local(1), bucketed.replicate))):
        assert apart(ours, theirs) <= 1e-12


def test_with_adam_it_is_not(ranks):
    ours, theirs = (ranks(2).run(trained, way, adam)[0] for way in (local(1), bucketed.replicate))
    assert apart(ours, theirs) > 1e-3


def test_one_rank_alone_is_plain_training(ranks):
    ours, plain = (ranks(1).run(trained, way, sgd(0.9))[0] for way in (local(4), None))
    assert all(torch.equal(a, b) for a, b in zip(ours, plain))


def test_ranks_drift_apart_and_meet_in_the_mean(ranks):
    everyone = ranks(3).run(trained, local(4), sgd(0.0), 8)
    for number in range(8):
        mine = [weights[number] for weights in everyone]
        assert torch.equal(mine[0], mine[1]) is torch.equal(mine[0], mine[2]) is (number % 4 == 3)
    lone = ranks(3).run(trained, None, sgd(0.0), 4)
    assert (everyone[0][3] - sum(weights[3] for weights in lone) / 3).abs().max() <= 1e-14


def test_post_local_is_synchronous_at_first(ranks):
    ours, theirs = (ranks(2).run(trained, way, adam, 8) for way in (local(3, first=5), bucketed.replicate))
    for mine, other in zip(ours, theirs):
        assert all(torch.equal(a, b) for a, b in zip(mine[:5], other))
    same = [torch.equal(a, b) for a, b in zip(*ours)]
    assert same == [True] * 5 + [False, False, True]


def with_buffers(comm):
    model = model_of().train()
    replica = local_sgd.replicate(model, comm, every=10)
    model(batch(comm.rank, 0))
    model[1].num_batches_tracked += comm.rank
    mine = model[1].running_mean.clone()
    talked, buffers = (replica.average(), replica.average(now=True)), copy.deepcopy(dict(model.named_buffers()))
    model[0].weight.data[0, 0] = float("nan") if comm.rank else 1.0
    replica.average(now=True)
    return *talked, mine, buffers, model[0].weight.isnan().sum()


def test_floating_buffers_are_averaged_others_become_rank_0s_and_a_nan_everybodys(ranks):
    everyone = ranks(2).run(with_buffers)
    mean = sum(mine for _, _, mine, *_ in everyone) / 2
    for early, late, mine, buffers, spread in everyone:
        assert (early, late) == (False, True)
        assert not torch.equal(mine, mean) and (buffers["1.running_mean"] - mean).abs().max() <= 1e-15
        assert buffers["1.num_batches_tracked"] == 1 and spread == 1


def test_a_run_that_goes_on_averages_in_turn():
    def talks(comm):
        run = local_sgd.replicate(nn.Linear(2, 1), comm, every=3, first_synchronous=1)
        before = [run.average() for _ in range(3)]
        again = local_sgd.replicate(nn.Linear(2, 1), comm, every=3, first_synchronous=1)
        again.load_state_dict(run.state_dict())
        with pytest.raises(UserError, match=r"no state of local SGD; got \['steps'\]; expected what state_dict"):
            again.load_state_dict({"steps": 2})
        return before, [again.average() for _ in range(4)]

    assert threads.run(talks, 2, (), 10) == [([False] * 3, [True, False, False, True])] * 2


def test_an_average_beside_the_turn_is_no_step():
    """A mean at the end of an epoch moved all later ones."""

    def talks(comm):
        run = local_sgd.replicate(nn.Linear(2, 1), comm, every=3)
        return [run.average(), run.average(now=True), run.average(), run.average(now=True), run.average(), run.steps]

    assert threads.run(talks, 2, (), 10) == [[False, True, False, True, True, 3]] * 2


def test_a_gradient_is_a_mean_over_samples_in_both_phases():
    """Losses that are sums: divided by all samples while that is synchronous, and by nothing from then on."""

    def steps(comm):
        model, found = nn.Linear(1, 1, bias=False, dtype=torch.float64), []
        run = local_sgd.replicate(model, comm, every=9, first_synchronous=1)
        for samples in (2 * comm.rank + 1, 2 * comm.rank + 1, 0, None):
            model.zero_grad()
            x = torch.full((samples or 0, 1), 6.0 * (comm.rank + 1), dtype=torch.float64)
            model(x).sum().backward()
            run.sync(samples=samples)
            run.average()
            found.append(model.weight.grad.item())
        with pytest.raises(UserError, match="these are no samples; got list"):
            run.sync(samples=[1])
        return found

    both = (1 * 6 + 3 * 12) / 4
    assert threads.run(steps, 2, (), 10) == [[both, 6.0, 0.0, 0.0], [both, 12.0, 0.0, 0.0]]


def test_weights_that_have_no_mean_are_no_buffers():
    """Complex weights of the other ranks were dropped without a word: they became rank 0's."""

    def fn(comm):
        model = nn.Linear(1, 1, dtype=torch.complex64)
        return local_sgd.replicate(model, comm, every=1).average()

    with pytest.raises(RankError, match="complex64"):
        threads.run(fn, 2)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, 0), "local SGD averages every so many steps; got 0; expected at least 1"),
        ((2.5, 0), "local SGD averages every so many steps; got 2.5; expected at least 1"),
        ((1, -1), "so many steps cannot be synchronous; got -1; expected 0 or more"),
    ],
)
def test_what_is_no_period(arguments, text):
    with pytest.raises(UserError) as caught:
        local_sgd.replicate(nn.Linear(1, 1), None, *arguments)
    assert str(caught.value) == text
