"""Partial rounds last as long as their quorum, one of all is synchronous, and what is late is dropped or delayed."""

import threading
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lt_core.base.action import Op
from lt_core.base.errors import RankError, UserError
from lt_core.comm import served, threads
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel.parameter_server import SGD, Job, Kind, ParameterServer, Synchronous
from lt_core.data_parallel.partial import (
    BackupWorkers,
    Eager,
    Majority,
    PartialReduce,
    averaging,
    law_round_s,
    p_reduce,
)
from lt_core.data_parallel.staleness import balance, uses
from lt_core.engine.drive import drive
from lt_core.engine.referee import Referee
from lt_core.engine.simulate import simulate
from lt_core.engine.speeds import Speeds
from tests import witnesses
from tests.data_parallel.problems import Numbers, loss, mlp, numbers, value
from tests.data_parallel.servers import JOB, Patient, met

SLOW = [10, 10, 10, 100]
INTEGERS = Job(Numbers, numbers, partial(SGD, rate=4.0))


def driven(policy, seconds, until_s=1e9, job=None):
    schedule = drive(policy, Speeds(seconds), until_s).check()
    return schedule, job and ps.weights(ps.replayed(schedule, job, Kind.of(policy)))


def rounds(schedule, costs, server):
    """When each version was made."""
    return [s.end_s for s in simulate(schedule, costs).spans if s.rank == server and s.action.op is Op.U]


@pytest.mark.parametrize("rule", [BackupWorkers(4, 3), Eager(4, 3), BackupWorkers(4, 4), Eager(4, 4), Synchronous(4)])
def test_a_round_lasts_as_long_as_its_quorum(rule):
    schedule, _ = driven(ParameterServer(4, rule), SLOW, 1000)
    made = rounds(schedule, Speeds(SLOW), 4)
    round_s = law_round_s(SLOW, getattr(rule, "quorum", 4))
    assert round_s == (10 if getattr(rule, "quorum", 4) == 3 else 100)
    assert made == [round_s * (k + 1) for k in range(int(1000 / round_s))]


def test_the_order_statistic():
    assert [law_round_s([7, 3, 9, 5], q) for q in (1, 2, 3, 4)] == [3, 5, 7, 9]


@pytest.mark.parametrize("rule", [BackupWorkers(3, 3), Eager(3, 3)])
def test_a_quorum_of_all_is_synchronous_bit_for_bit(rule):
    seconds = [1, 3, 2]
    results = [driven(ParameterServer(3, r, updates=4), seconds, job=JOB)[1] for r in (rule, Synchronous(3))]
    assert torch.equal(*results)


def test_backup_workers_drop_what_is_late():
    schedule, weights = driven(ParameterServer(4, BackupWorkers(4, 3), updates=20), SLOW, job=INTEGERS)
    made = uses(schedule.lanes)
    late = [(u.rank, u.clock) for u in made if u.written is None]
    assert late and {rank for rank, _ in late} == {3}
    applied = [(u.rank, u.clock) for u in made if u.written is not None]
    assert all(u.stale == 0 for u in made if u.written is not None)
    assert weights.tolist() == pytest.approx([-sum(4 * value(*one) / 3 for one in applied)] * 4, rel=1e-14)
    assert balance(schedule, 4) == (len(applied) + len(late), len(applied), len(late), 0)


def test_the_last_update_of_backup_workers_is_a_mean_of_those_who_came():
    """With two servers one may close while the other has half a quorum; that was divided by a whole one."""
    schedule, weights = driven(ParameterServer(3, BackupWorkers(3, 2), 2, updates=2), [2, 1, 1], job=INTEGERS)
    came, parts = set(), []
    for server in (3, 4):
        of_version = {}
        for u in uses([schedule.lanes[server]]):
            of_version.setdefault(u.written, []).append(value(u.rank, u.clock))
        of_version.pop(None, None)  # dropped
        came |= {len(one) for one in of_version.values()}
        parts += [-sum(4 * sum(one) / len(one) for one in of_version.values())] * 2
    assert came == {1, 2} and weights.tolist() == pytest.approx(parts, rel=1e-14)


@settings(max_examples=25)
@given(
    st.lists(st.sampled_from([1, 2, 3, 10, 25]), min_size=2, max_size=5),
    st.integers(1, 5),
    st.sampled_from([1, 2]),
    st.booleans(),
)
def test_eager_applies_every_gradient_once_after_the_drain(seconds, quorum, servers, majority):
    workers = len(seconds)
    rule = Majority(workers, seed=quorum) if majority else Eager(workers, min(quorum, workers))
    schedule, weights = driven(
        ParameterServer(workers, rule, servers, updates=9),
        seconds,
        job=Job(Numbers, numbers, partial(SGD, rate=float(workers))),
    )
    produced = [(a.rank, a.batch) for a in schedule.actions() if a.op is Op.F]
    for server in range(workers, workers + servers):
        assert balance(schedule, server) == (len(produced), len(produced), 0, 0)
    assert weights.tolist() == pytest.approx([-sum(value(*one) for one in produced)] * 4, rel=1e-13)


def test_eager_divides_by_all_and_the_late_rank_has_what_it_missed():
    """At 100 s rank 3 comes ten rounds late: its gradient is in version 11, and the weights it then reads are the
    newest; up to there every round is a mean over four of which one is zero."""
    schedule, weights = driven(ParameterServer(4, Eager(4, 3)), SLOW, 110, INTEGERS)
    late = [u for u in uses(schedule.lanes) if u.rank == 3]
    assert [(u.clock, u.read, u.written) for u in late] == [(0, 0, late[0].written)] and late[0].written in (10, 11)
    made = [(u.rank, u.clock) for u in uses(schedule.lanes)]
    assert weights.tolist() == [-sum(value(*one) for one in made)] * 4
    again = [a for a in schedule.lanes[3] if a.op is Op.COPY]
    reads = {a: k for k, a in enumerate(schedule.needs)}
    updates = [a for a in schedule.needs if a.op is Op.U and reads[a] < reads[again[1]]]
    assert len(updates) in (9, 10, 11)


def test_majority_waits_for_a_rank_that_is_drawn():
    """Half of all ranks are there when a rank drawn at random comes, more than with solo."""
    counts = []
    for rule in (Eager(8, 1), Majority(8, seed=1)):
        schedule, _ = driven(ParameterServer(8, rule), [8, 9, 10, 11, 12, 13, 14, 15], 2000)
        made = uses(schedule.lanes)
        fresh = [sum(u.written == v and u.stale == 0 for u in made) for v in range(1, max(u.written for u in made))]
        counts.append(sum(fresh) / len(fresh))
    assert counts[0] < 2 and 3 < counts[1] < 6


@pytest.mark.parametrize("rule", [BackupWorkers(4, 3), Eager(4, 3)])
def test_a_real_run_with_a_slow_rank(ranks, rule):
    """All begin together, and rank 3 is in its first batch until the others are in their second."""
    policy = ParameterServer(4, rule, updates=12)
    referee, clocks = Referee(policy, ps.never, 20), {0: [0, 1], 1: [0, 1], 2: [0, 1], 3: [0, 0]}
    ended = ranks(5).run(met, clocks, Kind.of(policy), served(referee), served(threading.Barrier(4)))
    schedule = referee.schedule().check()
    assert torch.equal(ps.weights(ended), ps.weights(ps.replayed(schedule, JOB, Kind.of(policy))))
    made = balance(schedule, 4)
    assert made.met and made.underway == 0 and (made.dropped > 0) == isinstance(rule, BackupWorkers)
    (late,) = (u for u in uses(schedule.lanes) if (u.rank, u.clock) == (3, 0))
    assert late.read == 0 and (late.written is None if isinstance(rule, BackupWorkers) else late.written > 1)


HELD_UP = {
    "backup": (lambda: ParameterServer(3, BackupWorkers(3, 2), updates=6), "rank 2 has not come"),
    "eager": (lambda: ParameterServer(3, Eager(3, 2), updates=6), "rank 2 is at 0F0"),
    "p-reduce": (lambda: PartialReduce(3, 2, gradients=12), r"rank 0 waits in exchange \(from 2\) for rank 2"),
}


@pytest.mark.parametrize("name", HELD_UP)
def test_a_worker_that_never_arrives_holds_nobody_up_and_is_named_in_the_end(name):
    """It does not come at all, or stays in its first batch; the others make all that there is to make."""
    make, words = HELD_UP[name]
    policy, over, begun = make(), threading.Event(), threading.Event()
    asked = Patient(policy, ps.never, 20)

    def held(model, rank, clock):
        if rank == 2:
            begun.set()
            over.wait(20)
        elif name == "eager":
            begun.wait(20)  # else it might read later weights, or come when all is made
        return loss(model, rank, clock)

    def fn(comm):
        if comm.rank == 2 and name != "eager":
            over.wait(20)
        try:
            job = Job(mlp, held, partial(SGD, rate=0.05))
            return averaging.run(comm, job, asked) if name == "p-reduce" else ps.run(comm, job, Kind.of(policy), asked)
        finally:
            over.set()

    with pytest.raises(RankError, match=words) as caught:
        threads.run(fn, policy.size, (), 2 if name == "p-reduce" else 20)
    assert caught.value.kind == "Deadline"
    made = (p_reduce.uses if name == "p-reduce" else uses)(asked.schedule().lanes)
    assert {u.rank for u in made} == {0, 1} and len(made) >= 12


@pytest.mark.parametrize("make", [BackupWorkers, Eager, PartialReduce])
@pytest.mark.parametrize("quorum", [0, 2.5, 5])
def test_a_quorum_that_cannot_be(make, quorum):
    with pytest.raises(UserError) as caught:
        make(4, quorum)
    assert str(caught.value) == f"no round has a quorum of {quorum}; expected 1 to 4, the workers"


def test_every_law_here_was_tested_on_real_ranks():
    """Those of replicate and local SGD stand in test_laws."""
    others = (".__init__", ".replicate.", ".local_sgd")
    mine = [m for m in witnesses.modules_with_laws("data_parallel") if not any(other in m for other in others)]
    assert mine == [f"lt_core.data_parallel.{name}" for name in ("downpour", "parameter_server.laws", "partial.laws")]
