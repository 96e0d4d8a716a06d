"""Who used which version is read off what happened: the same from a schedule, a simulation, and a real run's trace."""

from functools import partial

import torch

from lt_core.base.action import Op
from lt_core.base.trace import Trace
from lt_core.comm import served
from lt_core.data_parallel import parameter_server as ps
from lt_core.data_parallel.parameter_server import SGD, Asynchronous, Job, Kind, ParameterServer
from lt_core.data_parallel.partial import BackupWorkers, PartialReduce, p_reduce
from lt_core.data_parallel.staleness import Balance, balance, marked, uses
from lt_core.engine.drive import drive
from lt_core.engine.referee import Referee
from lt_core.engine.simulate import simulate
from lt_core.engine.speeds import Speeds
from tests.data_parallel.problems import loss, mlp
from tests.typed import typed

BY_HAND = typed("""
    0: 0COPY0<2 0F0      0SEND0>2 0COPY1<2 1F1 0SEND1>2
    1: 0COPY0<2 0F0      0SEND0>2
    2: 0SEND0>0 0SEND0>1 0ADD0<0  0U0 0SEND1>0 0ADD0<1 0U1 0COPY1<0
""")


def test_read_and_written_by_hand():
    found = [(u.rank, u.clock, u.read, u.version, u.written, u.stale) for u in uses(BY_HAND.lanes)]
    assert found == [(0, 0, 0, 1, 1, 0), (1, 0, 0, 2, 2, 1), (0, 1, 1, 2, None, None)]
    assert balance(BY_HAND, 2) == Balance(produced=3, applied=2, dropped=1, underway=0)


def test_a_gradient_counted_twice_or_lost_breaks_the_balance():
    twice = typed("0: 0COPY0<1 0F0 0SEND0>1 0SEND1>1\n1: 0SEND0>0 0ADD0<0 0U0 0ADD1<0 0U1")
    assert balance(twice, 1) == Balance(1, 2, 0, 0) and not balance(twice, 1).met
    lost = typed("0: 0COPY0<1 0F0 0SEND0>1\n1: 0SEND0>0 0ADD0<0")
    assert balance(lost, 1) == Balance(1, 0, 0, 1)  # taken, and in no update


def marks(trace):
    return sorted((m.rank, m.value["clock"], m.value["read"], str(m.value["written"])) for m in trace.marks)


def test_a_simulation_and_the_schedule_say_the_same():
    for policy in (ParameterServer(4, Asynchronous()), ParameterServer(4, BackupWorkers(4, 3), servers=2)):
        costs = Speeds([1, 1, 1, 10])
        schedule = drive(policy, costs, 60)
        said = sorted((u.rank, u.clock, u.read, str(u.written)) for u in uses(schedule.lanes))
        assert marks(marked(simulate(schedule, costs))) == said


def test_a_worker_in_its_first_batch_is_no_server():
    """It had read, and computed nothing yet: its reading was taken for a gradient that was dropped."""
    schedule = drive(ParameterServer(4, Asynchronous()), Speeds([10, 10, 10, 100]), 50)
    assert [a.op for a in schedule.lanes[3]] == [Op.COPY]
    assert {u.rank for u in uses(schedule.lanes)} == {0, 1, 2} and all(u.written for u in uses(schedule.lanes))


def test_of_p_reduce_too():
    schedule = drive(PartialReduce(3, 2, 12), Speeds([1, 2, 3]), 1e9)
    trace = marked(simulate(schedule, Speeds([1, 2, 3])), p_reduce.uses)
    assert len(trace.marks) == 12 and all(m.value["written"] > m.value["read"] for m in trace.marks)


def test_a_real_run_s_trace_and_its_record_say_the_same(ranks):
    policy, job = ParameterServer(3, Asynchronous(), 2, updates=15), Job(mlp, loss, partial(SGD, rate=0.05))
    referee = Referee(policy, ps.never, 20)
    ended = ranks(5).run(ps.run, job, Kind.of(policy), served(referee))
    schedule = referee.schedule().check()
    trace = marked(Trace.merge([one.trace for one in ended]))
    assert marks(trace) == sorted((u.rank, u.clock, u.read, str(u.written)) for u in uses(schedule.lanes))
    assert torch.cat([one.part for one in ended[3:]]).numel() == 66
