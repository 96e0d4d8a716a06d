"""Downpour: one worker is serial Adagrad; reading and pushing seldom costs a fraction, and loses no gradient."""

from functools import partial

import pytest
import torch

from lt_core.base.action import Op
from lt_core.base.errors import UserError
from lt_core.comm import served
from lt_core.data_parallel import downpour
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel.parameter_server import SGD, Job, Kind
from lt_core.data_parallel.staleness import balance, uses
from lt_core.engine.drive import drive
from lt_core.engine.referee import Referee
from lt_core.engine.speeds import Speeds
from tests import witnesses
from tests.data_parallel.problems import Numbers, flat, loss, mlp, numbers, serial, value


def test_one_worker_is_serial_adagrad():
    policy, job = downpour.policy(1, servers=2, updates=9), downpour.job(mlp, loss, rate=0.1, local_rate=0.7)
    weights = ps.weights(ps.replayed(drive(policy, Speeds([1]), 1e9), job, Kind.of(policy)))
    assert torch.allclose(weights, serial(partial(torch.optim.Adagrad, lr=0.1), 9), rtol=0, atol=1e-14)


def test_the_drawing_of_one_worker():
    schedule = drive(downpour.policy(1, fetch_every=2, push_every=4, updates=1), Speeds([1]), 1e9).check()
    assert [str(a) for a in schedule.lanes[0]] == "0COPY0<1 0F0 0F1 0COPY2<1 0F2 0F3 0SEND3>1".split()


@pytest.mark.parametrize(("fetch_every", "push_every"), [(1, 1), (4, 4), (3, 2), (2, 5)])
@pytest.mark.parametrize("servers", [1, 2])
def test_every_gradient_is_applied_once(fetch_every, push_every, servers):
    """Integers of their own: the weights say which gradients are in them, also those that were never pushed alone."""
    policy = downpour.policy(3, servers, fetch_every, push_every, updates=10)
    schedule = drive(policy, Speeds([1, 2, 5]), 1e9)
    job = Job(Numbers, numbers, partial(SGD, rate=1.0))
    done = [(a.rank, a.batch) for a in schedule.actions() if a.op is Op.F]
    weights = ps.weights(ps.replayed(schedule, job, Kind.of(policy)))
    assert weights.tolist() == [-sum(value(*one) for one in done)] * 4
    for server in range(3, 3 + servers):
        made = balance(schedule, server, push_every)
        assert made == (len(done), len(done), 0, 0) and made.met


def test_workers_step_by_themselves_between_two_reads():
    """Read once, push after three: the gradient that arrives is that of three steps along one's own way."""
    policy, job = (
        downpour.policy(1, fetch_every=3, push_every=3, updates=1),
        Job(mlp, loss, partial(SGD, rate=0.1), 0.1),
    )
    weights = ps.weights(ps.replayed(drive(policy, Speeds([1]), 1e9), job, Kind.of(policy)))
    model = mlp()
    for clock in range(3):
        model.zero_grad()
        loss(model, 0, clock).backward()
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-0.1)
    assert torch.allclose(weights, flat(model), rtol=0, atol=1e-14)


def test_the_others_wait_until_rank_0_has_warmed_up():
    schedule = drive(downpour.policy(3, warm_updates=4, updates=12), Speeds([1, 1, 1]), 1e9)
    made = uses(schedule.lanes)
    assert [u.rank for u in made[:4]] == [0] * 4 and {u.rank for u in made[4:]} == {0, 1, 2}
    assert all(u.read >= 4 for u in made if u.rank)


def counted(comm, job, kind, asked):
    before = comm.traffic.copy()
    ended = ps.run(comm, job, kind, asked)
    return ended, (comm.traffic - before).counted.bytes


def test_a_real_run_sends_a_fraction_and_replays(ranks):
    group, job = ranks(4), downpour.job(mlp, loss, rate=0.05, local_rate=0.01)
    policy = downpour.policy(2, servers=2, fetch_every=2, push_every=4, updates=8)
    referee = Referee(policy, ps.never, 20)
    ended = group.run(counted, job, Kind.of(policy), served(referee))
    schedule, layout = referee.schedule().check(), ps.Layout(mlp(), 2)
    made = [sum(a.op is Op.F for a in schedule.lanes[rank]) for rank in range(2)]
    laws = [downpour.law_bytes(layout, 2, rank, made[rank], 2, 4) for rank in range(2)]
    laws += [sum(downpour.law_bytes(layout, 1, 1 + k, n, 2, 4) for n in made) for k in range(2)]
    assert [nbytes for _, nbytes in ended] == laws
    again = ps.replayed(schedule, job, Kind.of(policy))
    assert torch.equal(ps.weights([one for one, _ in ended]), ps.weights(again))
    witnesses.RAN.add(("lt_core.data_parallel.downpour", group.backend))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: downpour.WarmStart(updates=-1),
            "a warm start cannot last so long; got -1 updates; expected 0 or more",
        ),
        (
            lambda: downpour.policy(2, warm_updates=9, updates=8),
            "the warm start never ends; got 9 updates of 8; expected fewer than `updates`",
        ),
        (
            lambda: downpour.policy(2, fetch_every=0),
            "a parameter server cannot have fetch_every 0; expected at least 1",
        ),
    ],
)
def test_what_it_refuses(call, words):
    with pytest.raises(UserError) as caught:
        call()
    assert str(caught.value) == words
