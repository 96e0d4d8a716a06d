"""Stale synchrony: nobody is further ahead than the slack, reads hold what they must, and slack 0 is synchronous."""

import math
import threading
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lt_core.base.action import Op
from lt_core.base.errors import UserError
from lt_core.comm import served
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel.parameter_server import SGD, Asynchronous, Job, Kind, ParameterServer, Synchronous
from lt_core.data_parallel.stale_synchronous import StaleSynchronous, law_clocks, may_start
from lt_core.data_parallel.staleness import balance
from lt_core.engine.drive import drive
from lt_core.engine.referee import Referee
from lt_core.engine.speeds import Speeds
from tests.data_parallel.problems import Numbers, loss, mlp, numbers
from tests.data_parallel.servers import JOB, met


def gaps(schedule, workers):
    """The largest gap of clocks at a start, and right after a clock was finished."""
    clocks, at_start, after = [0] * workers, 0, 0
    for a in schedule.needs:
        if a.op is Op.COPY and a.rank < workers:
            at_start = max(at_start, clocks[a.rank] - min(clocks))
        elif a.op is Op.SEND and a.rank < workers:
            clocks[a.rank] += 1
            after = max(after, clocks[a.rank] - min(clocks))
    return at_start, after


@pytest.mark.parametrize(
    ("clocks", "slack", "may"),
    [
        ([0, 0, 0], 0, [True, True, True]),
        ([1, 0, 1], 0, [False, True, False]),
        ([4, 1, 3], 2, [False, True, True]),
        ([9, 1, 3], math.inf, [True, True, True]),
    ],
)
def test_who_may_start(clocks, slack, may):
    assert [may_start(clocks, rank, slack) for rank in range(3)] == may


@pytest.mark.parametrize(
    ("slack", "clocks"),
    [(0, [10, 10, 10]), (1, [11, 11, 10]), (3, [13, 13, 10]), (10, [20, 20, 10]), (math.inf, [100, 100, 10])],
)
def test_clocks_with_one_worker_ten_times_slower(slack, clocks):
    policy = ParameterServer(3, StaleSynchronous(slack))
    schedule = drive(policy, Speeds([1, 1, 10]), 100)
    assert policy.books[0].clocks == clocks == law_clocks([1, 1, 10], slack, 100)
    assert slack == math.inf or gaps(schedule, 3) == (slack, slack + 1)


def read_sets(schedule, workers):
    """Of each read (worker, clock): the updates (rank, clock) that were in the weights, as (worker, clock) -> set."""
    inside, taken, clock, found = set(), [], [0] * workers, {}
    for a in schedule.needs:
        if a.op is Op.ADD:
            taken.append((a.peer, a.batch))
        elif a.op is Op.U:
            inside |= set(taken)
            taken.clear()
        elif a.op is Op.COPY:
            found[a.rank, clock[a.rank]] = set(inside)
            clock[a.rank] += 1
    return found


@settings(max_examples=25)
@given(st.lists(st.sampled_from([1, 2, 3, 7, 10]), min_size=2, max_size=5), st.integers(0, 4))
def test_a_read_holds_what_the_bound_promises_and_nothing_too_new(seconds, slack):
    workers = len(seconds)
    schedule = drive(ParameterServer(workers, StaleSynchronous(slack)), Speeds(seconds), 60)
    for (rank, clock), inside in read_sets(schedule, workers).items():
        old = {(r, c) for r in range(workers) for c in range(clock - slack)}
        own = {(rank, c) for c in range(clock)}
        assert old | own <= inside
        assert all(c < clock + slack for r, c in inside if r != rank)
    assert gaps(schedule, workers)[0] <= slack


@pytest.mark.parametrize("seconds", [[1, 1, 1], [3, 1, 2], [1, 1, 10]])
def test_slack_0_is_synchronous(seconds):
    """Each gradient is a step of its own, so the sum stands where the mean over three does: a third of the rate."""
    for make, of, same in (Numbers, numbers, torch.equal), (mlp, loss, partial(torch.allclose, rtol=0, atol=1e-12)):
        stale = ParameterServer(3, StaleSynchronous(0), updates=12)
        sync = ParameterServer(3, Synchronous(3), updates=4)
        weights = []
        for policy, rate in (stale, 0.25), (sync, 0.75):
            schedule = drive(policy, Speeds(seconds), 1e9)
            done = ps.replayed(schedule, Job(make, of, partial(SGD, rate=rate)), Kind.of(policy))
            weights.append(ps.weights(done))
        assert same(*weights)


def test_slack_without_end_is_asynchronous():
    stale, free = (ParameterServer(3, rule, updates=30) for rule in (StaleSynchronous(math.inf), Asynchronous()))
    assert drive(stale, Speeds([1, 2, 10]), 1e9).lanes == drive(free, Speeds([1, 2, 10]), 1e9).lanes


def test_a_real_run_keeps_the_bound_and_replays(ranks):
    """Rank 2 is in its first batch until the others are two ahead, and then lasts three hundredths of a second."""
    policy = ParameterServer(3, StaleSynchronous(2), updates=36)
    referee, ahead = Referee(policy, ps.never, 20), served(threading.Barrier(3))
    clocks, costs = {0: [2], 1: [2], 2: [0]}, Speeds([0, 0, 3])
    ended = ranks(4).run(met, clocks, Kind.of(policy), served(referee), ahead, costs)
    schedule = referee.schedule().check()
    assert torch.equal(ps.weights(ended), ps.weights(ps.replayed(schedule, JOB, Kind.of(policy))))
    assert gaps(schedule, 3)[0] == 2 and balance(schedule, 3).underway == 0


def test_what_it_refuses():
    with pytest.raises(UserError) as caught:
        StaleSynchronous(-1)
    assert str(caught.value) == (
        "no worker can be ahead by that; got -1; expected a slack of 0 or more; try: 0 is synchronous"
    )
