"""The executor keeps every order, overlaps what may, and ends on the first error, late wait or abort, naming it."""

import signal
import threading
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lt_core.base.errors import Aborted, Deadline
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Trace
from lt_core.collectives import ring
from lt_core.engine.costs import Unit
from lt_core.engine.execute import execute
from lt_core.engine.simulate import simulate
from tests.typed import gpipe, typed

pytestmark = pytest.mark.timeout(20)
SIDE_BY_SIDE = typed(
    "0: 0F0 0OUT0 1F0 1OUT0 1B0 0IN0 0B0", {"0OUT0": "0F0", "1OUT0": "1F0", "0IN0": "0OUT0", "0B0": "0IN0"}
)


class Machine:
    """Notes what it runs and on which thread; `does` maps the text of an action to what then happens."""

    def __init__(self, **does):
        self.does = {name.replace("_", ""): do for name, do in does.items()}
        self.ran, self.threads, self.reasons = [], [], []
        self.aborted = threading.Event()

    def run(self, actions):
        self.threads.append(threading.current_thread())
        self.ran.append("+".join(map(str, actions)))
        do = self.does.get(str(actions[0]).split(">")[0].split("<")[0].replace("_", ""), lambda: None)
        return do()

    def abort(self, reason):
        self.reasons.append(reason)
        self.aborted.set()

    def hangs(self):
        """Runs until aborted, as a message does that never comes."""
        assert self.aborted.wait(15)
        raise Aborted(self.reasons[0])


class Begun:
    """A Work that is over when it is told to."""

    def __init__(self, log, name, over=None):
        self.log, self.name, self.over = log, name, over or threading.Event()

    def wait(self):
        assert self.over.wait(15)
        self.log.append(f"{self.name} over")

    def span(self):
        return 1.0, 2.0


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


def fails():
    raise KeyError("the machine's own")


@pytest.mark.parametrize("schedule", [typed("0: 0F0 1F0 1B0"), SIDE_BY_SIDE], ids=["alone", "side by side"])
def test_the_first_error_is_raised_with_its_own_traceback_after_abort(schedule):
    machine, trace = Machine(**{"1F0": fails}), Trace("t")
    with pytest.raises(KeyError, match="the machine's own") as caught:
        execute(schedule, 0, machine, trace)
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][-1] == "fails"
    assert machine.reasons == ['rank 0: KeyError: "the machine\'s own"']
    assert (
        "1B0" not in machine.ran
        and "0F0" in {s.name for s in trace.spans}
        and "1F0" not in {s.name for s in trace.spans}
    )


def test_abort_ends_what_the_other_workers_are_in():
    machine = Machine()
    machine.does = {"0OUT0": machine.hangs, "1F0": fails}
    with pytest.raises(KeyError):
        execute(SIDE_BY_SIDE, 0, machine, Trace("t"))
    assert threading.active_count() == 1 or not {t for t in machine.threads if t.is_alive()} - {
        threading.current_thread()
    }


def test_an_abort_that_fails_does_not_hide_the_error():
    machine = Machine(**{"0F0": fails})
    machine.abort = lambda reason: 1 / 0
    with pytest.raises(KeyError) as caught:
        execute(typed("0: 0F0"), 0, machine, Trace("t"))
    assert caught.value.__notes__ == ["and abort failed: division by zero"]


def test_a_wait_for_an_action_that_never_ends_names_both():
    machine, trace = Machine(), Trace("t")
    machine.does = {"0IN0": machine.hangs}
    with pytest.raises(Deadline) as caught:
        execute(SIDE_BY_SIDE, 0, machine, trace, deadline_s=0.1)
    assert str(caught.value) == "rank 0: 0B0 has waited 0.1 s for 0IN0"
    assert machine.reasons == ["rank 0: Deadline: rank 0: 0B0 has waited 0.1 s for 0IN0"]
    assert [s.name for s in trace.spans if s.stream == "compute"] == ["0F0", "1F0", "1B0"]


@pytest.mark.parametrize(
    ("drawing", "message"),
    [("0: 0F0 1F0", "rank 0: 1F0 has waited 0.1 s for 0F0"), ("0: 0F0", "rank 0: the end has waited 0.1 s for 0F0")],
)
def test_a_work_that_is_never_over_is_a_deadline_also_without_threads(drawing, message):
    machine = Machine()

    class Never(Begun):
        def wait(self):
            machine.hangs()

    machine.does = {"0F0": lambda: Never([], "0F0")}
    trace = Trace("t")
    with pytest.raises(Deadline) as caught:
        execute(typed(drawing), 0, machine, trace, deadline_s=0.1)
    assert str(caught.value) == message and trace.spans == [] and machine.aborted.is_set()


def test_the_whole_wait_counts_not_each_of_its_parts():
    """Three Works of 60 ms each are one wait of 180 ms."""
    machine = Machine()

    class Slow(Begun):
        def wait(self):
            if machine.aborted.wait(0.06):
                raise Aborted(machine.reasons[0])

    machine.does = {text: lambda: Slow([], "") for text in ("0F0", "0OUT0", "0IN0")}
    s = typed("0: 0F0 0OUT0 0IN0 0DROP0", {"0DROP0": "0F0 0OUT0 0IN0"})
    with pytest.raises(Deadline, match=r"has waited 0.1 s for"):
        execute(s, 0, machine, Trace("t"), deadline_s=0.1)


def test_a_rank_that_goes_on_is_not_late():
    """0SEND0 waits for longer than the deadline, and all the while something is issued."""
    beat = threading.Event()
    drawing = "0: " + " ".join(f"{k}F0" for k in range(6)) + " 0SEND0>1 0ADD0<1\n1: 0ADD0<0 0SEND0>0"
    s = typed(drawing, {"0SEND0>1": "5F0"})
    machine = Machine(**{f"{k}F0": lambda: (beat.wait(0.06) and None) or None for k in range(6)})
    execute(s, 0, machine, Trace("t"), deadline_s=0.25)
    assert len(machine.ran) == 8


def test_an_interrupt_of_the_caller_stops_the_workers():
    machine = Machine()

    def interrupts():
        signal.raise_signal(signal.SIGINT)
        machine.hangs()

    machine.does = {"0OUT0": interrupts}
    with pytest.raises(KeyboardInterrupt):
        execute(SIDE_BY_SIDE, 0, machine, Trace("t"))
    assert machine.reasons == ["rank 0: KeyboardInterrupt: "]
    assert not any(thread.is_alive() for thread in machine.threads)
