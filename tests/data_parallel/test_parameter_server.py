"""A server trains as the plain loop does, and is as stale as the law says; what nobody used stays where it is."""

from functools import partial
from itertools import product

import pytest
import torch
from torch import nn

from lt_core.base.action import Action, Op
from lt_core.base.errors import UserError
from lt_core.collectives import Mean, naive
from lt_core.comm import threads
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel.parameter_server import SGD, Asynchronous, Job, Kind, ParameterServer, Synchronous
from lt_core.data_parallel.partial import BackupWorkers, Eager
from lt_core.data_parallel.stale_synchronous import StaleSynchronous
from lt_core.data_parallel.staleness import balance, uses
from lt_core.engine.drive import drive
from lt_core.engine.speeds import Speeds
from tests.data_parallel.problems import Numbers, Parabola, flat, loss, mlp, numbers, parabola, serial, value
from tests.data_parallel.servers import JOB, driven


def test_the_drawing():
    schedule = drive(ParameterServer(2, Synchronous(2), updates=1), Speeds([1, 2]), 9).check()
    assert [line.rstrip(" .") for line in schedule.grid().splitlines()] == [
        "0: 0COPY0<2 0F0      0SEND0>2",
        "1: .        0COPY0<2 0F0      0SEND0>2",
        "2: 0SEND0>0 0SEND0>1 0ADD0<0  0ADD0<1  0U0",
    ]


@pytest.mark.parametrize("rule", [Synchronous(1), Asynchronous()])
@pytest.mark.parametrize("servers", [1, 3])
def test_one_worker_is_sgd(rule, servers):
    for ours, plain in [
        (partial(SGD, rate=0.05), partial(torch.optim.SGD, lr=0.05)),
        (
            partial(SGD, rate=0.05, momentum=0.9, decay=0.1),
            partial(torch.optim.SGD, lr=0.05, momentum=0.9, weight_decay=0.1),
        ),
        (partial(torch.optim.SGD, lr=0.05, momentum=0.9), partial(torch.optim.SGD, lr=0.05, momentum=0.9)),
    ]:
        policy = ParameterServer(1, rule, servers, updates=7)
        weights, _ = driven(policy, Job(mlp, loss, ours), [1])
        assert torch.equal(weights, serial(plain, 7))


def replicas(rank, size, mean, steps=3):
    model = mlp()
    for clock in range(steps):
        model.zero_grad()
        loss(model, rank, clock).backward()
        means = mean({name: p.grad for name, p in model.named_parameters()})
        for name, p in model.named_parameters():
            p.data.add_(means[name], alpha=-0.05)
    return flat(model)


@pytest.mark.parametrize("fetch_every", [1, 2])
@pytest.mark.parametrize(
    "rule",
    [Synchronous(3), BackupWorkers(3, 2), Eager(3, 2), StaleSynchronous(0)],
    ids=lambda rule: type(rule).__name__,
)
def test_sums_of_two_gradients_count_as_one(rule, fetch_every):
    """Two pushes for one read let a fast worker stand for a slow one, or ended the run long before its updates."""
    policy = ParameterServer(3, rule, fetch_every=fetch_every, push_every=2, updates=6)
    schedule = drive(policy, Speeds([1, 1, 5]), 1e9)
    of_version = [[u.rank for u in uses(schedule.lanes) if u.written == v + 1 and u.read == v] for v in range(6)]
    assert policy.version >= 6 and all(len(set(ranks)) == len(ranks) for ranks in of_version)
    assert balance(schedule, 3, push_every=2).met
    with pytest.raises(UserError, match="one push for each read"):
        ParameterServer(3, rule, fetch_every=2, push_every=3)


@pytest.mark.parametrize(("workers", "servers"), [(2, 1), (3, 2), (5, 4)])
def test_synchronous_is_data_parallelism_bit_for_bit(workers, servers):
    def rank(comm):
        reducer = Mean(naive.schedule)
        return replicas(comm.rank, comm.size, lambda grads: reducer.reduce(grads, comm).mean)

    seconds = [1 + 0.1 * ((7 * r) % workers) for r in range(workers)]  # they come in another order than their ranks'
    weights, schedule = driven(ParameterServer(workers, Synchronous(workers), servers, updates=3), JOB, seconds)
    assert all(torch.equal(weights, one) for one in threads.run(rank, workers))
    assert balance(schedule, workers).applied == 3 * workers


def test_a_gradient_that_is_two_versions_old_is_applied_to_the_newest_weights():
    """Three workers as fast as each other: by hand, in integers."""
    policy = ParameterServer(3, Asynchronous(), updates=6)
    weights, schedule = driven(policy, Job(Numbers, numbers, partial(SGD, rate=1.0)), [1, 1, 1])
    order = [(u.rank, u.clock) for u in uses(schedule.lanes)]
    assert order[:6] == [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]
    assert weights.tolist() == [-sum(value(*one) for one in order)] * 4


@pytest.mark.parametrize(
    ("seconds", "slow", "fast"), [([1], {0}, 0), ([1] * 4, {3}, 3), ([1] * 6, {5}, 5), ([1, 1, 1, 10], {30}, 2.1)]
)
def test_staleness(seconds, slow, fast):
    schedule = drive(ParameterServer(len(seconds), Asynchronous()), Speeds(seconds), 400)
    stale = [[u.stale for u in uses(schedule.lanes) if u.rank == r][4:] for r in range(len(seconds))]
    assert set(stale[-1]) == slow and max(stale[0]) == (3 if len(seconds) == 4 else max(slow))
    means = [sum(one) / len(one) for one in stale]
    assert means[0] == pytest.approx(fast, abs=0.01)
    assert means == pytest.approx(ps.law_staleness(seconds), rel=1e-2)


@pytest.mark.parametrize(("tau", "step"), [(0, 2), (1, 1), (2, 0.618034), (3, 0.445042), (5, 0.284630), (10, 0.149460)])
def test_the_stable_step(tau, step):
    """N = tau + 1 equal workers on w^2 / 2 are the recurrence w <- w - step * (w, tau updates ago)."""
    assert ps.law_stable_step(tau) == pytest.approx(step, abs=1e-6)
    assert ps.law_stable_step(tau, 4.0) == pytest.approx(step / 4, abs=1e-6)
    sizes = []
    for factor in (0.95, 1.05):
        job = Job(Parabola, parabola, partial(SGD, rate=factor * ps.law_stable_step(tau)))
        policy = ParameterServer(tau + 1, Asynchronous())
        schedule, path = drive(policy, Speeds([1] * (tau + 1)), 40), []
        ps.replayed(schedule, job, Kind.of(policy), lambda a, shards, path=path: path.append(float(shards[0].weights)))
        sizes.append([max(map(abs, part)) for part in (path[: len(path) // 2], path[len(path) // 2 :])])
    assert sizes[0][1] < 0.7 * sizes[0][0] and sizes[1][1] > 1.5 * sizes[1][0], sizes


def test_old_gradients_count_less():
    """eta / tau: at four equal workers every gradient but the first few counts a third."""
    policy = ParameterServer(4, Asynchronous(), updates=12)
    job = Job(Numbers, numbers, partial(SGD, rate=3.0), aware=True)
    weights, schedule = driven(policy, job, [1] * 4)
    by_hand = -sum(3 * value(u.rank, u.clock) / max(1, u.stale) for u in uses(schedule.lanes))
    assert weights.tolist() == pytest.approx([by_hand] * 4, rel=1e-15)
    assert [u.stale for u in uses(schedule.lanes)][:6] == [0, 1, 2, 3, 3, 3]


def course(order, workers, rate):
    """The weight after each update on w^2 / 2, where the workers push in this order and read again at once."""
    job, kind = Job(Parabola, parabola, partial(SGD, rate=rate)), Kind(workers, 1, 1)
    *sides, server = (job.side(kind, rank) for rank in range(workers + 1))
    path = [1.0]
    for clock, rank in enumerate([*range(workers), *order]):
        if clock >= workers:
            sides[rank].compute(Action(Op.F, 0, clock, rank))
            server.take(Action(Op.ADD, 0, clock, workers, rank), sides[rank].give(Action(Op.SEND, 0, clock, rank)))
            server.compute(Action(Op.U, 0, clock, workers))
            path.append(float(server.weights))
        sides[rank].take(Action(Op.COPY, 0, clock, rank), server.give(Action(Op.SEND, 0, clock, workers, rank)))
    return path


@pytest.mark.parametrize(("workers", "updates"), [(1, 5), (2, 6), (3, 4)])
def test_asynchrony_begets_momentum(workers, updates):
    """The mean over every order in which workers may come, each as likely."""
    courses = [course(order, workers, 0.25) for order in product(range(workers), repeat=updates)]
    mean = torch.tensor(courses, dtype=torch.float64).mean(0)
    for before, here, after in zip(mean, mean[1:], mean[2:]):
        by_law = ps.law_momentum(workers) * (here - before) - 0.25 / workers * here
        assert float(after - here) == pytest.approx(float(by_law), abs=1e-14)
    assert [ps.law_momentum(n) for n in (1, 2, 4)] == [0, 0.5, 0.75]


class TwoLinears(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = (nn.Linear(1, 1, bias=False, dtype=torch.float64) for _ in range(2))
        for p in self.parameters():
            p.data.fill_(1.0)


def uses_both_then_a(model, rank, clock):
    x = torch.full((1, 1), rank + 1.0, dtype=torch.float64)
    return (model.a(x) + model.b(x) if clock == 0 else model.a(x)).sum()


def uses_one_each(model, rank, clock):
    x = torch.full((1, 1), rank + 1.0, dtype=torch.float64)
    return (model.a(x) if rank == 0 else model.b(x)).sum()


@pytest.mark.parametrize("servers", [1, 2])
def test_a_parameter_that_nobody_used_stays_where_it_is(servers):
    """Others took its gradient for zeros: momentum and decay then moved what should have stayed (pytorch#28294)."""
    optimizer = partial(SGD, rate=0.1, momentum=0.9, decay=0.1)
    first, _ = driven(
        ParameterServer(2, Synchronous(2), servers, updates=1), Job(TwoLinears, uses_both_then_a, optimizer), [1, 1]
    )
    weights, _ = driven(
        ParameterServer(2, Synchronous(2), servers, updates=2), Job(TwoLinears, uses_both_then_a, optimizer), [1, 1]
    )
    assert weights[1] == first[1] != 1.0
    velocity = 1.5 + 0.1  # both ranks' mean 1.5, and decay; then momentum on it, and a's gradient again
    assert first[0] == pytest.approx(1 - 0.1 * velocity)
    assert weights[0] == pytest.approx(float(first[0]) - 0.1 * (0.9 * velocity + 1.5 + 0.1 * float(first[0])))


def uses_a(model, rank, clock):
    return model.a(torch.full((1, 1), rank + 1.0, dtype=torch.float64)).sum()


@pytest.mark.parametrize(
    "rule",
    [Asynchronous(), BackupWorkers(3, 2), Eager(3, 2), StaleSynchronous(1)],
    ids=lambda rule: type(rule).__name__,
)
def test_nor_does_it_move_whoever_waits_for_whom(rule):
    job = Job(TwoLinears, uses_a, partial(SGD, rate=0.1, momentum=0.9, decay=0.1), aware=not rule.once_a_read)
    weights, _ = driven(ParameterServer(3, rule, updates=6), job, [1, 1.3, 2])
    assert weights[0] < 1 and weights[1] == 1


def test_a_parameter_that_one_rank_used_is_divided_by_all():
    weights, _ = driven(
        ParameterServer(2, Synchronous(2), updates=1), Job(TwoLinears, uses_one_each, partial(SGD, rate=1.0)), [1, 1]
    )
    assert weights.tolist() == [1 - 0.5, 1 - 1.0]
