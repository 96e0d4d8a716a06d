"""The executor keeps every order and overlaps what may."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lt_core.base.schedule import Schedule
from lt_core.base.trace import Trace
from lt_core.collectives import ring
from lt_core.engine.costs import Unit
from lt_core.engine.execute import execute
from lt_core.engine.simulate import simulate
from tests.engine.stand_ins import SIDE_BY_SIDE, Begun, Machine
from tests.typed import gpipe, typed

pytestmark = pytest.mark.timeout(20)


def test_a_lane_in_order_on_the_callers_thread():
    machine, trace = Machine(), Trace("t")
    execute(typed("0: 0F0 1F0 1B0 0B0"), 0, machine, trace)
    assert machine.ran == [s.name for s in trace.spans] == ["0F0", "1F0", "1B0", "0B0"]
    assert set(machine.threads) == {threading.current_thread()}
    assert all(a.end_s <= b.start_s for a, b in zip(trace.spans, trace.spans[1:]))


def test_an_exchange_runs_at_once_and_leaves_a_span_for_each_end():
    machine, trace = Machine(), Trace("t")
    execute(ring.schedule(3), 1, machine, trace)
    assert machine.ran == ["1SEND0>2+0ADD0<0", "0SEND1>2+2ADD1<0", "2SEND2>2+1COPY2<0", "1SEND3>2+0COPY3<0"]
    assert [(s.rank, s.stream, s.name, str(s.action)) for s in trace.spans[:2]] == [
        (1, "out", "1SEND0>2", "1SEND0>2"), (1, "in", "0ADD0<0", "0ADD0<0"),
    ]  # fmt: skip
    assert trace.spans[0][3:5] == trace.spans[1][3:5] and set(machine.threads) == {threading.current_thread()}


def test_spans_carry_the_bytes_that_the_machine_knows():
    machine, trace = Machine(), Trace("t")
    machine.nbytes = lambda action: 10 * action.unit
    execute(ring.schedule(3), 1, machine, trace)
    assert [s.nbytes for s in trace.spans[:2]] == [10, 0]


def test_nothing_to_do():
    trace = Trace("t")
    execute(Schedule("idle", ((), ()), {}), 1, Machine(), trace)
    assert trace.spans == []


@given(st.integers(2, 4), st.integers(1, 4), st.data())
def test_each_stream_keeps_the_order_of_the_simulation_and_needs_come_first(stages, batches, data):
    s, rank = gpipe(stages, batches), data.draw(st.integers(0, stages - 1))
    machine, trace, simulated = Machine(), Trace("t"), simulate(s, Unit(by={"F": 1.0, "B": 2.0}))
    execute(s, rank, machine, trace)
    for stream in ("compute", "out", "in"):
        assert trace.order(rank, stream) == simulated.order(rank, stream)
    place = {name: k for k, name in enumerate(machine.ran)}
    assert all(place[str(n)] < place[str(a)] for a in s.lanes[rank] for n in s.needs[a])


def test_streams_run_side_by_side():
    began = threading.Event()

    def computes():
        assert began.wait(10)  # 1F0 ends only after 0OUT0 began

    machine = Machine(**{"0OUT0": began.set, "1F0": computes})
    execute(SIDE_BY_SIDE, 0, machine, Trace("t"))
    assert sorted(machine.ran) == ["0B0", "0F0", "0IN0", "0OUT0", "1B0", "1F0", "1OUT0"]
    assert len(set(machine.threads)) == 3


def test_free_holds_up_nobody_and_runs_when_its_needs_are_over():
    s = typed("0: 0F0 0DROP0 1F0 1DROP0 0B0", {"0DROP0": "0B0", "1DROP0": "0F0"})
    machine = Machine()
    execute(s, 0, machine, Trace("t"))
    assert machine.ran == ["0F0", "1DROP0", "1F0", "0B0", "0DROP0"]  # a free before the next allocation


def test_what_needs_a_work_waits_for_it_and_others_go_on():
    log = []
    out = Begun(log, "0OUT0")

    def last():
        log.append("1B0 ran")
        out.over.set()

    machine = Machine(**{"0OUT0": lambda: out, "1B0": last, "0IN0": lambda: log.append("0IN0 ran")})
    trace = Trace("t")
    execute(SIDE_BY_SIDE, 0, machine, trace)
    assert log[0] == "1B0 ran" and log.index("0OUT0 over") < log.index("0IN0 ran")
    assert [s[3:5] for s in trace.spans if s.name == "0OUT0"] == [(1.0, 2.0)]


def test_a_stream_runs_one_thing_at_a_time():
    log, works = [], {}

    def begins(name):
        def run():
            log.append(name)
            works[name] = Begun(log, name)
            works[name].over.set()
            return works[name]

        return run

    execute(typed("0: 0F0 1F0 2F0"), 0, Machine(**{f"{k}F0": begins(f"{k}F0") for k in range(3)}), Trace("t"))
    assert [entry for k, entry in enumerate(log) if entry not in log[:k]] == [
        "0F0", "0F0 over", "1F0", "1F0 over", "2F0", "2F0 over",
    ]  # fmt: skip
