"""What a round costs by law, simulation and real ranks, and a real run replays to the same bits."""

import threading

import pytest
import torch

from lt_core.base.cluster import Wire
from lt_core.comm import served
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel.parameter_server import Asynchronous, Kind, ParameterServer, Synchronous
from lt_core.data_parallel.staleness import balance, uses
from lt_core.engine.costs import Unit
from lt_core.engine.drive import drive
from lt_core.engine.referee import Referee
from lt_core.engine.simulate import simulate
from lt_core.engine.speeds import Speeds
from tests import witnesses
from tests.data_parallel.problems import mlp
from tests.data_parallel.servers import JOB, driven, met


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


def test_real_runs_record_different_orders_and_each_replays_to_the_same_bits(ranks):
    for first in range(2):  # has pushed once when the others are in their first batch
        policy = ParameterServer(3, Asynchronous(), updates=30)
        referee, clocks = Referee(policy, ps.never, 20), {rank: [int(rank == first)] for rank in range(3)}
        ended = ranks(4).run(met, clocks, Kind.of(policy), served(referee), served(threading.Barrier(3)))
        schedule = referee.schedule().check()
        again = ps.replayed(schedule, JOB, Kind.of(policy))
        assert torch.equal(ps.weights(ended), ps.weights(again))
        assert balance(schedule, 3)[1:] == (balance(schedule, 3).produced, 0, 0)
        order = [(u.rank, u.clock) for u in uses(schedule.lanes)]
        assert order[0] == (first, 0) and {(rank, 0) for rank in range(3)} <= set(order)
        assert {s.rank for one in ended for s in one.trace.spans} == {0, 1, 2, 3}


def test_a_replay_in_another_order_is_another_run():
    """What the bits of a replay prove: the same gradients in another order give other weights."""
    policy = ParameterServer(3, Asynchronous(), updates=12)
    runs = [driven(ParameterServer(3, Asynchronous(), updates=12), JOB, s)[0] for s in ([1, 1, 1], [1, 1.1, 1.3])]
    assert policy.size == 4 and not torch.equal(*runs)
