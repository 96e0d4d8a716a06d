"""An emulated device lasts as long as its price says, on real ranks with real messages, and is told no start times."""

import threading

import pytest
import torch

from lt_core.base.errors import Aborted, UserError
from lt_core.base.trace import Level, Mark, Span, Trace
from lt_core.base.work import Over
from lt_core.engine.costs import Unit
from lt_core.engine.emulate import DeviceClock, emulate, emulated
from lt_core.engine.execute import execute
from lt_core.engine.simulate import simulate
from tests.typed import gpipe, typed

COSTS = Unit(by={"F": 2.0, "B": 4.0})
SCALE = 0.01  # an emulated second lasts 10 ms


class Machine:
    """Notes what it runs; `does` is what an action then does."""

    device = None

    def __init__(self, does=lambda: None):
        self.does, self.ran, self.reasons = does, [], []

    def run(self, actions):
        self.ran += map(str, actions)
        return self.does()

    def abort(self, reason):
        self.reasons.append(reason)


def traced(schedule, machine):
    trace = Trace(schedule.name)
    execute(schedule, 0, machine, trace)
    return emulated(trace, SCALE)


def test_the_time_of_a_device_is_booked_in_turn():
    clock = DeviceClock()
    first, second = clock.book(5.0), clock.book(2.0)
    assert isinstance(first, Over) and second.start_s == first.end_s == first.start_s + 5
    assert clock.free_s == second.end_s


def test_computations_last_what_they_cost_one_after_the_other():
    trace = traced(typed("0: 0F0 0B0 0F1"), emulate(Machine(), COSTS, SCALE))
    assert [s.end_s - s.start_s for s in trace.spans] == pytest.approx([2, 4, 2])
    assert trace.clock == "emulated x0.01"


def test_lateness_does_not_add_up():
    """After 20 computations the device is as late as after one, however late the host wakes up from each."""
    many = "0: " + " ".join(f"0F{k}" for k in range(20))
    trace = traced(typed(many), emulate(Machine(), Unit(by={"F": 0.1}), SCALE))
    gaps = [b.start_s - a.end_s for a, b in zip(trace.spans, trace.spans[1:])]
    assert all(gap >= 0 for gap in gaps) and sorted(gaps)[9] < 0.05  # 0.5 ms: what lies between, not the waking up


def test_only_computations_are_lengthened():
    machine = Machine()
    slow = emulate(machine, Unit(by={"F": 1e6, "OUT": 1e6, "DROP": 1e6}, alpha=1e6), SCALE)
    trace = Trace("t")
    execute(typed("0: 0SEND0>1 0OUT0 0DROP0\n1: 0ADD0<0"), 0, slow, trace)
    assert sorted(machine.ran) == ["0DROP0", "0OUT0", "0SEND0>1"] and trace.makespan_s() < 60


def test_a_computation_is_never_shortened():
    hold = threading.Event()
    trace = traced(typed("0: 0F0 1F0"), emulate(Machine(lambda: (hold.wait(0.05) and None) or None), COSTS, SCALE))
    assert all(s.end_s - s.start_s >= 5 for s in trace.spans)  # 50 ms of real work where 20 ms were asked for
    assert trace.spans[1].start_s >= trace.spans[0].end_s


def test_a_real_work_is_waited_for_too():
    class Work:
        waited = False

        def wait(self):
            self.waited = True

        def span(self):
            return 0.0, 0.0

    work = Work()
    traced(typed("0: 0F0"), emulate(Machine(lambda: work), COSTS, SCALE))
    assert work.waited


def test_machines_that_share_a_device_take_turns():
    clock = DeviceClock()
    first, second = (emulate(Machine(), COSTS, SCALE, clock) for _ in range(2))
    (a,), (b,) = typed("0: 0F0").lanes[0], typed("0: 1F0").lanes[0]
    works = [first.run([a]), second.run([b])]
    assert works[1].span()[0] == works[0].span()[1]


def test_it_knows_what_the_real_machine_knows():
    machine = Machine()
    machine.nbytes, machine.device = (lambda action: 7), torch.device("cpu")
    slow = emulate(machine, COSTS, SCALE)
    assert slow.device == torch.device("cpu") and slow.nbytes(None) == 7
    assert emulate(Machine(), COSTS, SCALE).device is None


def test_abort_ends_a_wait_for_the_device():
    machine = Machine()
    slow = emulate(machine, Unit(by={"F": 1e6}), SCALE)
    work = slow.run(typed("0: 0F0").lanes[0])
    slow.abort("the other rank left")
    with pytest.raises(Aborted, match="the emulated device was stopped"):
        work.wait()
    assert machine.reasons == ["the other rank left"]


@pytest.mark.parametrize("scale", [0, -1, float("nan")])
def test_a_scale_is_positive(scale):
    with pytest.raises(UserError, match=r"an emulated second cannot last .* s; expected more than 0; try: scale=0.01"):
        emulate(Machine(), COSTS, scale)


def test_a_trace_in_emulated_seconds():
    real = Trace(
        "t", [Span(0, "out", "x", 1.0, 2.0)], [Level(0, 1.5, "a", 1)], [Mark(0, 3.0, "k", 1)], "measured", "gloo"
    )
    trace = emulated(real, 0.5)
    assert (trace.spans[0][3:5], trace.levels[0].at_s, trace.marks[0].at_s) == ((2.0, 4.0), 3.0, 6.0)
    assert (trace.clock, trace.backend, real.clock) == ("emulated x0.5", "gloo", "measured")


class Stage:
    """A stage of a pipeline on a rank: real products, real messages; that of the name `late` is held back."""

    def __init__(self, comm, late, late_s):
        self.comm, self.late, self.late_s, self.never = comm, late, late_s, threading.Event()

    def run(self, actions):
        (a,) = actions
        x = torch.full((4, 4), float(10 * a.unit + a.batch), dtype=torch.float64)
        if a.peer < 0:
            self.value = x @ x
        elif a.op.stream == "out":
            self.never.wait(self.late_s if str(a) == self.late else 0)
            self.comm.exchange([(x, a.peer)], [])
        else:
            got = torch.empty_like(x)
            self.comm.exchange([], [(got, a.peer)])
            assert torch.equal(got, x)

    def abort(self, reason):
        self.comm.abort(reason)


def stage(comm, schedule, late, late_s):
    trace = Trace(schedule.name, backend=comm.backend)
    comm.barrier()
    execute(schedule, comm.rank, emulate(Stage(comm, late, late_s), COSTS, SCALE), trace, deadline_s=20)
    return trace


def starts(trace, rank):
    return {s.name: s.start_s for s in trace.spans if s.rank == rank and s.stream == "compute"}


def test_a_late_message_moves_the_bars_behind_it_in_the_measurement_and_not_in_the_simulation(ranks):
    """1F1 of rank 1 waits for a message of rank 0, which is sent 60 ms late: six emulated seconds."""
    schedule = gpipe(2, 2)
    trace = emulated(Trace.merge(ranks(2).run(stage, schedule, "0SEND_F1>1", 0.06)), SCALE)
    simulated = simulate(schedule, COSTS)
    sent = {s.name: s for s in trace.spans if s.rank == 0}["0SEND_F1>1"]
    assert sent.end_s - sent.start_s >= 6
    measured_s, simulated_s = starts(trace, 1), starts(simulated, 1)
    assert measured_s["1F1"] - measured_s["1F0"] >= 2 + 6 - 0.5 > simulated_s["1F1"] - simulated_s["1F0"] == 2
    behind = ["1F1", "1B1", "1B0"]
    assert all(measured_s[name] - measured_s["1F0"] >= simulated_s[name] - simulated_s["1F0"] + 5 for name in behind)
    before = starts(trace, 0)
    assert before["0F1"] - before["0F0"] < 6 and starts(trace, 0)["0B1"] >= sent.end_s


def test_the_order_of_each_stream_is_that_of_the_simulation(ranks):
    schedule = gpipe(3, 3)
    trace = emulated(Trace.merge(ranks(3).run(stage, schedule, None, 0.0)), SCALE)
    simulated = simulate(schedule, COSTS)
    for rank in range(3):
        for stream in ("compute", "out", "in"):
            assert trace.order(rank, stream) == simulated.order(rank, stream)
    assert trace.makespan_s() >= simulated.makespan_s() - 0.5
    assert [s.end_s - s.start_s for s in trace.spans if s.name[1] == "B"] == pytest.approx([4] * 9, abs=0.5)
