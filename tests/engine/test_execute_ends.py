"""The executor ends on the first error, the first wait that is too long, or an abort, and names it."""

import signal
import threading
import traceback

import pytest

from lt_core.base.errors import Aborted, Deadline
from lt_core.base.trace import Trace
from lt_core.engine.execute import execute
from tests.engine.stand_ins import SIDE_BY_SIDE, Begun, Machine
from tests.typed import typed

pytestmark = pytest.mark.timeout(20)


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
