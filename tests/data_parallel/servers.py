"""Runs of a server and its workers: on the virtual clock, and on real ranks."""

from functools import partial

from lt_core.comm import served
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel.parameter_server import SGD, Job, Kind
from lt_core.engine.drive import drive
from lt_core.engine.referee import Referee
from lt_core.engine.speeds import Speeds
from tests.data_parallel.problems import loss, mlp

JOB = Job(mlp, loss, partial(SGD, rate=0.05))


def driven(policy, job, seconds):
    """The weights after a run on the virtual clock, and its schedule."""
    schedule = drive(policy, Speeds(seconds), 1e9)
    return ps.weights(ps.replayed(schedule, job, Kind.of(policy))), schedule


def real(group, policy, job, deadline_s=20):
    """A real run: what the ranks brought home, and the record."""
    referee = Referee(policy, ps.never, deadline_s)
    return group.run(ps.run, job, Kind.of(policy), served(referee)), referee.schedule().check()
