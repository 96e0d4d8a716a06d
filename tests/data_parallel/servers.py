"""Runs of a server and its workers: on the virtual clock, and on real ranks that meet where it matters."""

from functools import partial

from lt_core.base.action import Op
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel.parameter_server import SGD, Job, Kind
from lt_core.engine.drive import drive
from lt_core.engine.referee import Referee
from lt_core.engine.speeds import Speeds
from tests.data_parallel.problems import loss, mlp

JOB = Job(mlp, loss, partial(SGD, rate=0.05))
MEET_S = 20


def meeting(barrier, clocks, of=loss):
    """A job whose worker r waits at the barrier in each of its batches clocks[r]: no speed decides who is there."""

    def held(model, rank, clock):
        for _ in range(clocks.get(rank, []).count(clock)):
            barrier.wait(MEET_S)
        return of(model, rank, clock)

    return Job(mlp, held, JOB.optimizer)


def met(comm, clocks, kind, asked, barrier, costs=None):
    """What a rank brings home from a run with `meeting`."""
    return ps.run(comm, meeting(barrier, clocks), kind, asked, costs)


class Patient(Referee):
    """Any wait may last 20 s until the last of six updates is made, and half a second from then on."""

    def done(self, action):
        if action.op is Op.U and action.batch == 5:
            self.deadline_s = 0.5
        super().done(action)


def driven(policy, job, seconds):
    """The weights after a run on the virtual clock, and its schedule."""
    schedule = drive(policy, Speeds(seconds), 1e9)
    return ps.weights(ps.replayed(schedule, job, Kind.of(policy))), schedule
