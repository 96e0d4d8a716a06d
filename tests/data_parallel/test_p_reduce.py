"""P-Reduce: a group of all is synchronous, averaging takes nothing out of the sum, a real run replays."""

import threading
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from lt_core.base.action import Op
from lt_core.base.errors import RankError
from lt_core.comm import served, threads
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel.parameter_server import SGD, Job, Kind, ParameterServer, Synchronous
from lt_core.data_parallel.partial import PartialReduce, averaging, law_bytes, law_messages, p_reduce
from lt_core.engine.drive import drive
from lt_core.engine.referee import Referee
from lt_core.engine.speeds import Speeds
from tests import witnesses
from tests.data_parallel.problems import Numbers, loss, mlp, numbers, value
from tests.data_parallel.servers import JOB, meeting


def test_p_reduce_of_all_is_synchronous():
    schedule = drive(PartialReduce(3, 3, gradients=12), Speeds([1, 3, 2]), 1e9).check()
    ended = averaging.replayed(schedule, JOB)
    policy = ParameterServer(3, Synchronous(3), updates=4)
    sync = ps.weights(ps.replayed(drive(policy, Speeds([1, 3, 2]), 1e9), JOB, Kind.of(policy)))
    assert all((one.weights - sync).abs().max() <= 1e-12 for one in ended)


@settings(max_examples=20)
@given(st.lists(st.sampled_from([1, 2, 3, 10]), min_size=2, max_size=5), st.integers(1, 5), st.integers(1, 20))
def test_averaging_takes_nothing_out_of_the_sum(seconds, quorum, gradients):
    """The weights are doubly stochastic: the mean model moves by the mean of all steps, whoever met whom."""
    workers = len(seconds)
    schedule = drive(PartialReduce(workers, min(quorum, workers), gradients), Speeds(seconds), 1e9).check()
    done = [(a.rank, a.batch) for a in schedule.actions() if a.op is Op.F]
    ended = averaging.replayed(schedule, Job(Numbers, numbers, partial(SGD, rate=1.0)))
    assert (
        len(done) == gradients
        and {u.at for u in p_reduce.uses(schedule.lanes)}
        and len(p_reduce.uses(schedule.lanes)) == gradients
    )
    mean = -sum(value(*one) for one in done) / workers
    for one in ended:
        assert one.weights.tolist() == pytest.approx([mean] * 4, rel=1e-13)
        assert torch.equal(one.weights, ended[0].weights)


def test_the_slow_rank_meets_the_others_when_it_is_ready():
    schedule = drive(PartialReduce(4, 2), Speeds([10, 10, 10, 100]), 205).check()
    met = p_reduce.groups(schedule)
    assert sum(3 in group for group in met) == 2 and all(len(group) == 2 for group in met)
    stale = {u.stale for u in p_reduce.uses(schedule.lanes) if u.rank == 3}
    assert stale == {10}  # groups that formed while it computed
    assert sum(a.op is Op.F for lane in schedule.lanes[:3] for a in lane) >= 40  # where synchronous ones would make 6


def counted(comm, job, asked):
    before = comm.traffic.copy()
    ended = averaging.run(comm, job, asked)
    return ended, (comm.traffic - before).counted


def test_a_real_run_of_p_reduce(ranks):
    group, referee = ranks(4), Referee(PartialReduce(4, 2, gradients=40), ps.never, 20)
    ended = group.run(counted, JOB, served(referee))
    schedule = referee.schedule().check()
    again = averaging.replayed(schedule, JOB)
    assert all(torch.equal(one.weights, other.weights) for (one, _), other in zip(ended, again))
    assert all(torch.equal(one.weights, ended[0][0].weights) for one, _ in ended)
    met = p_reduce.groups(schedule)
    for rank, (_, sent) in enumerate(ended):
        mine = [(law_bytes(66 * 8, len(m), m[0] == rank), law_messages(len(m), m[0] == rank)) for m in met if rank in m]
        assert (sent.bytes, sent.messages) == tuple(map(sum, zip(*mine)))
    witnesses.RAN.add(("lt_core.data_parallel.partial.laws", group.backend))


def other_models(comm, run, heard):
    """Run, and write down what this rank heard."""
    try:
        run(comm)
    except BaseException as error:
        heard.append((comm.rank, f"{type(error).__name__}: {error}"))
        raise


def wide(rank):
    model = nn.Linear(3 if rank else 2, 1, dtype=torch.float64)
    for p in model.parameters():
        nn.init.zeros_(p)  # ranks 1 and 2, who may meet first, are alike
    return model


def deeper(rank):
    return nn.Sequential(*(nn.Linear(1, 1, dtype=torch.float64) for _ in range(2 - bool(rank))))


def seeded(rank):
    model = mlp()
    model[0].weight.data[0, 0] += rank == 2
    return model


def total(model, rank, clock):
    return sum(p.sum() for p in model.parameters())


def job_of(make, rank):
    return Job(partial(make, rank), total, partial(SGD, rate=0.05))


def by_groups(make):
    asked = Referee(PartialReduce(3, 2, gradients=12), ps.never, 20)
    return lambda comm: averaging.run(comm, job_of(make, comm.rank), asked)


def by_a_server(make):
    policy = ParameterServer(2, Synchronous(2), updates=3)
    asked = Referee(policy, ps.never, 20)
    return lambda comm: ps.run(comm, job_of(make, comm.rank), Kind.of(policy), asked)


SHAPES = r"as number 0: rank \d has weight \(1, \d\) torch.float64, rank \d has weight \(1, \d\) torch.float64"
MORE = r"as number 2: rank \d has (nothing|1.weight \(1, 1\) torch.float64), rank \d has (nothing|1.weight)"
WEIGHTS = r"as number 4: rank \d has weights at the start \w{16}, rank \d has weights at the start \w{16}"


@pytest.mark.parametrize(
    ("way", "make", "words"),
    [
        (by_groups, wide, SHAPES),
        (by_groups, seeded, WEIGHTS),
        (by_a_server, wide, SHAPES),
        (by_a_server, deeper, MORE),
    ],
    ids=["p-reduce, shapes", "p-reduce, weights", "server, shapes", "server, more"],
)
def test_ranks_that_train_different_models_are_told_when_they_meet(way, make, words):
    """Their weights were averaged, element by element, or a gradient was applied to other parameters."""
    heard = []
    with pytest.raises(RankError, match="the ranks train different models; got " + words) as caught:
        threads.run(other_models, 3, (way(make), heard), 20)
    assert caught.value.kind == "Mismatch" and {rank for rank, _ in heard} == {0, 1, 2}
    assert all("the ranks train different models" in text for _, text in heard)


def spoils(model, rank, clock):
    return loss(model, rank, clock) * (float("inf") if (rank, clock) == (1, 1) else 1)


def test_a_model_that_would_not_be_finite_meets_nobody():
    asked = Referee(PartialReduce(3, 2, gradients=12), ps.never, 20)
    job = meeting(threading.Barrier(2), {0: [1], 1: [1]}, spoils)  # else the others might make all twelve
    with pytest.raises(RankError, match=r"rank 1's gradient of clock 1 would spoil the weights of all; got (inf|nan)"):
        threads.run(averaging.run, 3, (job, asked), 20)
