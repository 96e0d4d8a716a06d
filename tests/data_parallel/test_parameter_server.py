"""A server trains as the plain loop does, is as stale as the law says, and its real runs replay to the same bits."""

import os
import signal
from functools import partial
from itertools import product

import pytest
import torch
from torch import nn

from lt_core.base.action import Action, Op
from lt_core.base.cluster import Wire
from lt_core.base.errors import RankError, UserError
from lt_core.collectives import Mean, naive
from lt_core.comm import launch, served, threads
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel.parameter_server import SGD, Asynchronous, Job, Kind, ParameterServer, Synchronous
from lt_core.data_parallel.partial import BackupWorkers, Eager
from lt_core.data_parallel.stale_synchronous import StaleSynchronous
from lt_core.data_parallel.staleness import balance, uses
from lt_core.engine.costs import Unit
from lt_core.engine.drive import drive
from lt_core.engine.referee import Referee
from lt_core.engine.simulate import simulate
from lt_core.engine.speeds import Speeds
from tests import witnesses
from tests.data_parallel.problems import Numbers, Parabola, flat, loss, mlp, numbers, parabola, value

JOB = Job(mlp, loss, partial(SGD, rate=0.05))


def driven(policy, job, seconds):
    """The weights after a run on the virtual clock, and its schedule."""
    schedule = drive(policy, Speeds(seconds), 1e9)
    return ps.weights(ps.replayed(schedule, job, Kind.of(policy))), schedule


def real(group, policy, job, deadline_s=20):
    """A real run: what the ranks brought home, and the record."""
    referee = Referee(policy, ps.never, deadline_s)
    return group.run(ps.run, job, Kind.of(policy), served(referee)), referee.schedule().check()


def serial(optimizer, steps, of=loss, make=mlp):
    """The plain loop of one process, with an optimizer of torch's own."""
    model = make()
    opt = optimizer(model.parameters())
    for clock in range(steps):
        opt.zero_grad()
        of(model, 0, clock).backward()
        opt.step()
    return flat(model)


# --- what it does -----------------------------------------------------------------------------------------------------


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


# --- how old gradients are --------------------------------------------------------------------------------------------


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


# --- parameters that are not used -------------------------------------------------------------------------------------


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


def test_a_parameter_that_one_rank_used_is_divided_by_all():
    weights, _ = driven(
        ParameterServer(2, Synchronous(2), updates=1), Job(TwoLinears, uses_one_each, partial(SGD, rate=1.0)), [1, 1]
    )
    assert weights.tolist() == [1 - 0.5, 1 - 1.0]


# --- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("workers", "servers"), [(1, 1), (4, 1), (4, 2), (4, 4), (6, 3), (8, 2)])
@pytest.mark.parametrize("compute_s", [0.5, 8.0, 1000.0])
def test_seconds_of_a_synchronous_round(workers, servers, compute_s):
    nbytes, wire = 4096 * servers, Wire("any", 0.5, 1024.0)
    costs = Speeds([compute_s] * workers, Unit(alpha=wire.latency_s + nbytes / servers / wire.bytes_per_s))
    schedule = drive(ParameterServer(workers, Synchronous(workers), servers, updates=2), costs, 1e9)
    assert simulate(schedule, costs).makespan_s() == 2 * ps.law_seconds(workers, servers, nbytes, wire, compute_s)


def test_sharding_divides_what_a_server_sends():
    layouts = [ps.Layout(mlp(), k) for k in (1, 2, 4)]
    sent = [[ps.law_bytes(one, 3, 3 + k) for k in range(one.parts)] for one in layouts]
    assert layouts[0].elements == 66 and sent == [[3 * 8 * 66], [3 * 8 * 33] * 2, [3 * 8 * n for n in (16, 17, 16, 17)]]


def counted(comm, job, kind, asked):
    before = comm.traffic.copy()
    ended = ps.run(comm, job, kind, asked)
    sent = (comm.traffic - before).counted
    return ended, sent.bytes, sent.messages


def test_a_real_run_meets_law_and_simulation_to_the_byte(ranks):
    group, workers, servers, rounds = ranks(5), 3, 2, 4
    policy = ParameterServer(workers, Synchronous(workers), servers, updates=rounds)
    referee = Referee(policy, ps.never, 20)
    ended = group.run(counted, JOB, Kind.of(policy), served(referee))
    layout, schedule = ps.Layout(mlp(), servers), referee.schedule().check()
    for rank, (one, nbytes, messages) in enumerate(ended):
        sends = [s for s in one.trace.spans if s.stream == "out"]
        simulated = [a for a in schedule.lanes[rank] if a.op.stream == "out"]
        assert nbytes == sum(s.nbytes for s in sends) == rounds * ps.law_bytes(layout, workers, rank)
        assert messages == len(simulated) == rounds * ps.law_messages(layout, workers, rank)
    weights, _ = driven(ParameterServer(workers, Synchronous(workers), servers, updates=rounds), JOB, [3, 1, 2])
    assert torch.equal(ps.weights([one for one, *_ in ended]), weights)  # synchronous: whoever came first
    witnesses.RAN.add(("lt_core.data_parallel.parameter_server.laws", group.backend))


# --- real runs --------------------------------------------------------------------------------------------------------


def test_real_runs_record_different_orders_and_each_replays_to_the_same_bits(ranks):
    orders = set()
    for _ in range(6):
        policy = ParameterServer(3, Asynchronous(), updates=30)
        ended, schedule = real(ranks(4), policy, JOB)
        again = ps.replayed(schedule, JOB, Kind.of(policy))
        assert torch.equal(ps.weights(ended), ps.weights(again))
        assert balance(schedule, 3)[1:] == (balance(schedule, 3).produced, 0, 0)
        orders.add(tuple((u.rank, u.clock) for u in uses(schedule.lanes)))
        if len(orders) > 1:
            break
    assert len(orders) > 1  # or nothing was asynchronous
    assert {s.rank for one in ended for s in one.trace.spans} == {0, 1, 2, 3}


def test_a_replay_in_another_order_is_another_run():
    """What the bits of a replay prove: the same gradients in another order give other weights."""
    policy = ParameterServer(3, Asynchronous(), updates=12)
    runs = [driven(ParameterServer(3, Asynchronous(), updates=12), JOB, s)[0] for s in ([1, 1, 1], [1, 1.1, 1.3])]
    assert policy.size == 4 and not torch.equal(*runs)


# --- what goes wrong --------------------------------------------------------------------------------------------------


def dies(comm, job, kind, asked):
    """Rank 2, the server, fails at its third update."""
    if comm.rank == 2:
        job = Job(job.model, job.loss, lambda ps_: Failing(ps_))
    return ps.run(comm, job, kind, asked)


class Failing:
    def __init__(self, parameters):
        self.left = 3

    def step(self):
        self.left -= 1
        if not self.left:
            raise MemoryError("the server is full")


def test_a_server_that_dies_is_named_and_nobody_hangs(ranks):
    referee = Referee(ParameterServer(2, Asynchronous(), updates=30), ps.never, 20)
    with pytest.raises(Exception, match="rank 2 failed first: MemoryError: the server is full"):
        ranks(3).run(dies, JOB, Kind.of(referee.policy), served(referee))


class Killed(Failing):
    """Ends its own process at the third update, as a machine does that loses its power."""

    def step(self):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.processes
def test_a_server_whose_process_is_killed_is_named_and_nobody_hangs():
    policy = ParameterServer(2, Asynchronous(), updates=30)
    job = Job(mlp, loss, lambda parameters: Killed(parameters))
    with pytest.raises(RankError) as caught:
        launch(ps.run, 3, job, Kind.of(policy), served(Referee(policy, ps.never, 60)), backend="gloo", timeout_s=60)
    assert (caught.value.rank, caught.value.kind) == (2, "died") and "SIGKILL" in caught.value.message
    assert policy.version == 2  # what was decided before stands


def spoils(model, rank, clock):
    """Rank 1 has a nan in the gradient of its third batch."""
    return loss(model, rank, clock) * (float("nan") if (rank, clock) == (1, 2) else 1)


def told(comm, job, kind, asked, heard):
    """What each rank hears."""
    try:
        return ps.run(comm, job, kind, asked)
    except BaseException as error:
        heard.append((comm.rank, f"{type(error).__name__}: {error}"))
        raise


@pytest.mark.parametrize("rule", [Synchronous(2), Asynchronous()])
def test_a_gradient_that_is_not_finite_gets_into_no_weights_and_everybody_is_told(ranks, rule):
    policy, seen, heard = ParameterServer(2, rule, updates=30), [], []
    referee = Referee(policy, ps.never, 20)
    words = "rank 1's gradient of clock 2 would spoil the weights of all; got nan; expected finite numbers"
    with pytest.raises(RankError, match=words) as caught:
        job = Job(mlp, spoils, partial(SGD, rate=0.05))
        ranks(3).run(told, job, Kind.of(policy), served(referee), served(heard))
    assert caught.value.rank == 1 and {rank for rank, _ in heard} == {0, 1, 2}
    assert all(words in text for _, text in heard)
    again = ps.replayed(referee.schedule(), JOB, Kind.of(policy), lambda a, shards: seen.append(a))
    assert (1, 2) not in {(u.rank, u.clock) for u in uses([[a for a in seen if a.rank == 2]])}
    assert ps.weights(again).isfinite().all()


def late(comm, job, kind, asked):
    """Rank 1 never comes."""
    return None if comm.rank == 1 else ps.run(comm, job, kind, asked)


@pytest.mark.parametrize("rule", [Synchronous(2), Asynchronous()])
def test_a_worker_that_never_arrives_is_named(ranks, rule):
    """Also where the others need not wait for it: in the end they do."""
    referee = Referee(ParameterServer(2, rule, updates=30), ps.never, 0.5)
    with pytest.raises(Exception, match=r"has waited 0\.5 s for its next action: .*rank 1 has not come"):
        ranks(3).run(late, JOB, Kind.of(referee.policy), served(referee))


def two_kinds():
    return nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1).double())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ParameterServer(0, Asynchronous()), "a parameter server cannot have workers 0; expected at least 1"),
        (
            lambda: ParameterServer(2, Asynchronous(), servers=0),
            "a parameter server cannot have servers 0; expected at least 1",
        ),
        (
            lambda: ParameterServer(2, Synchronous(2), fetch_every=2),
            "this rule wants one push for each read; got fetch_every 2, push_every 1; "
            "expected push_every a multiple of fetch_every",
        ),
        (
            lambda: ps.Layout(two_kinds()),
            "a server keeps one vector; got parameters of float32, float64 dtype; expected one dtype",
        ),
        (lambda: ps.Layout(nn.Identity()), "a server keeps one vector; got parameters of no dtype; expected one dtype"),
        (
            lambda: ps.law_stable_step(-1),
            "no stable step; got tau -1, curvature 1.0; expected tau from 0, a curvature above 0",
        ),
        (
            lambda: ps.law_momentum(0),
            "momentum of no workers; got 0; expected at least 1",
        ),
        (
            lambda: ps.law_staleness([1, 0]),
            "staleness needs seconds of each worker; got [1, 0]; expected numbers above 0",
        ),
        (lambda: Speeds([-1]), "a rank cannot compute in less than no time; got -1 s; expected 0 or more seconds"),
    ],
)
def test_what_it_refuses(call, words):
    with pytest.raises(UserError) as caught:
        call()
    assert str(caught.value) == words
