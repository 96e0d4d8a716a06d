"""Who dies, never comes or brings no finite gradient is named, nobody hangs; what cannot be is refused."""

import os
import signal
import threading

import pytest
from torch import nn

from lt_core.base.errors import RankError, UserError
from lt_core.comm import launch, served
from lt_core.data_parallel import downpour
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel.parameter_server import Asynchronous, Job, Kind, ParameterServer, Synchronous
from lt_core.data_parallel.partial import BackupWorkers, Eager, PartialReduce
from lt_core.data_parallel.stale_synchronous import StaleSynchronous
from lt_core.data_parallel.staleness import uses
from lt_core.engine.referee import Referee
from lt_core.engine.speeds import Speeds
from tests.data_parallel.problems import loss, mlp
from tests.data_parallel.servers import JOB, meeting


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


@pytest.mark.parametrize("rule", [Synchronous(2), Asynchronous()])
def test_a_server_that_dies_is_named_and_nobody_hangs(ranks, rule):
    referee = Referee(ParameterServer(2, rule, updates=30), ps.never, 20)
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


def told(comm, kind, asked, heard, third):
    """What each rank hears, where both workers are in their third batch at the same time."""
    try:
        return ps.run(comm, meeting(third, {0: [2], 1: [2]}, spoils), kind, asked)
    except BaseException as error:
        heard.append((comm.rank, f"{type(error).__name__}: {error}"))
        raise


EVERY_RULE = [
    Synchronous(2),
    Asynchronous(),
    StaleSynchronous(1),
    BackupWorkers(2, 1),
    Eager(2, 1),
    downpour.WarmStart(),
]
each_rule = pytest.mark.parametrize("rule", EVERY_RULE, ids=lambda rule: type(rule).__name__)


@each_rule
def test_a_gradient_that_is_not_finite_gets_into_no_weights_and_everybody_is_told(ranks, rule):
    policy, seen, heard = ParameterServer(2, rule, updates=30), [], []
    referee = Referee(policy, ps.never, 20)
    words = "rank 1's gradient of clock 2 would spoil the weights of all; got nan; expected finite numbers"
    with pytest.raises(RankError, match=words) as caught:
        ranks(3).run(told, Kind.of(policy), served(referee), served(heard), served(threading.Barrier(2)))
    assert caught.value.rank == 1 and {rank for rank, _ in heard} == {0, 1, 2}
    assert all(words in text for _, text in heard)
    again = ps.replayed(referee.schedule(), JOB, Kind.of(policy), lambda a, shards: seen.append(a))
    assert (1, 2) not in {(u.rank, u.clock) for u in uses([[a for a in seen if a.rank == 2]])}
    assert ps.weights(again).isfinite().all()


def late(comm, job, kind, asked):
    """Rank 1 never comes."""
    return None if comm.rank == 1 else ps.run(comm, job, kind, asked)


@pytest.mark.parametrize("rule", [Synchronous(2), Asynchronous(), StaleSynchronous(1)])
def test_a_worker_that_never_arrives_is_named(ranks, rule):
    """Also where the others need not wait for it: in the end they do."""
    referee = Referee(ParameterServer(2, rule, updates=30), ps.never, 0.5)
    with pytest.raises(Exception, match=r"has waited 0\.5 s for its next action: .*rank 1 has not come"):
        ranks(3).run(late, JOB, Kind.of(referee.policy), served(referee))


@pytest.mark.parametrize("size", [2, 4])
def test_other_ranks_than_the_policy_has_are_told(ranks, size):
    """One too many looked for its part where there was none: list index out of range."""
    referee = Referee(ParameterServer(2, Asynchronous(), updates=3), ps.never, 20)
    words = f"each rank is a worker or a server; got {size} ranks; expected 2 workers and 1 servers; try: launch"
    with pytest.raises(RankError, match=words):
        ranks(size).run(ps.run, JOB, Kind.of(referee.policy), served(referee))


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
            lambda: ParameterServer(2, Asynchronous(), push_every=1.5),
            "a parameter server cannot have push_every 1.5; expected at least 1",
        ),
        (
            lambda: ParameterServer(2, Asynchronous(), updates=-1),
            "a run has so many updates; got -1; expected 0 or more, or None for a run without end",
        ),
        (
            lambda: PartialReduce(2, 2, gradients=-1),
            "a run has so many gradients; got -1; expected 0 or more, or None for a run without end",
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
