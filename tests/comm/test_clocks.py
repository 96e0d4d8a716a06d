"""One time for all ranks: offsets of clocks that are really off, and one trace of all ranks on rank 0."""

import threading
import time

import pytest

from lt_core.base.action import Action, Op
from lt_core.base.trace import Mark, Span, Trace
from lt_core.comm import clocks
from lt_core.comm.contract import contract
from lt_core.comm.threads import run


@pytest.mark.parametrize("size", [1, 2, 5])
def test_ranks_of_one_host_read_one_clock(size):
    def fn(comm):
        comm = contract(comm)
        return clocks.offsets(comm), comm.traffic.bytes

    assert run(fn, size) == [([0.0] * size, 0)] * size  # and nobody asked for these bytes


def test_clocks_that_are_off(monkeypatch):
    """Threads share one clock, so each rank's is set apart by hand."""

    def fn(comm):
        apart[comm.rank] = 100.0 * comm.rank
        mine.rank = comm.rank
        comm.barrier()
        return clocks.offsets(comm)

    real, mine, apart = time.perf_counter, threading.local(), {}
    monkeypatch.setattr(clocks.time, "perf_counter", lambda: real() + apart.get(getattr(mine, "rank", 0), 0.0))
    started = real()
    found = run(fn, 3)[2]
    error_s = real() - started
    assert found == pytest.approx([0, 100, 200], abs=error_s) and error_s < 50


def test_traces_of_all_ranks_become_one():
    def fn(comm):
        comm = contract(comm)
        trace = Trace(f"ring of {comm.rank}", clock="measured", backend="threads")
        at = 5.0 + comm.rank
        send = Action(Op.SEND, 1, 0, comm.rank, (comm.rank + 1) % comm.size)
        trace.spans.append(Span(comm.rank, "out", str(send), at, at + 1, 64, send))
        trace.marks += [Mark(comm.rank, at, "text", "Zeile\nπ")] * (1000 * comm.rank)  # of very different lengths
        return clocks.gather_traces(comm, trace), comm.traffic.bytes

    (whole, nbytes), *others = run(fn, 3)
    assert nbytes == 0 and [o for o, _ in others] == [None, None]
    assert [s.rank for s in whole.spans] == [0, 1, 2]
    assert [s.start_s for s in whole.spans] == pytest.approx([0, 1, 2], abs=0.5)
    assert whole.spans[1].action == Action(Op.SEND, 1, 0, 1, 2)
    assert len(whole.marks) == 3000 and whole.marks[-1].value == "Zeile\nπ"
    assert (whole.name, whole.clock, whole.backend) == ("ring of 0", "measured", "threads")


def test_an_empty_trace_travels_too():
    whole = run(lambda comm: clocks.gather_traces(comm, Trace("none")), 2)[0]
    assert (whole.name, whole.spans) == ("none", [])
