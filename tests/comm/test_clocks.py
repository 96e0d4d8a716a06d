"""One time for all ranks: offsets of clocks that are really off, and one trace of all ranks on rank 0."""

import time

import pytest

from lt_core.base.action import Action, Op
from lt_core.base.trace import Mark, Span, Trace
from lt_core.comm import clocks


@pytest.mark.parametrize("size", [1, 2, 5])
def test_ranks_of_one_host_read_one_clock(ranks, size):
    def fn(comm):
        before = comm.traffic.copy()
        return clocks.offsets(comm), (comm.traffic - before).bytes

    assert ranks(size).run(fn) == [([0.0] * size, 0)] * size  # and nobody asked for these bytes


def test_clocks_that_are_off(ranks):
    def fn(comm):
        begun_s = time.perf_counter()
        found = clocks.offsets(comm, lambda: time.perf_counter() + 100 * comm.rank)
        return found, time.perf_counter() - begun_s

    found, took_s = ranks(3).run(fn)[2]
    assert found == pytest.approx([0, 100, 200], abs=took_s)
    assert took_s < 50 and 0 not in found[1:]


def test_traces_of_all_ranks_become_one(ranks):
    def fn(comm):
        before, trace = comm.traffic.copy(), Trace(f"ring of {comm.rank}", clock="measured", backend="threads")
        at = 5.0 + comm.rank
        send = Action(Op.SEND, 1, 0, comm.rank, (comm.rank + 1) % comm.size)
        trace.spans.append(Span(comm.rank, "out", str(send), at, at + 1, 64, send))
        trace.marks += [Mark(comm.rank, at, "text", "Zeile\nπ")] * (1000 * comm.rank)  # of very different lengths
        return clocks.gather_traces(comm, trace), (comm.traffic - before).bytes

    (whole, nbytes), *others = ranks(3).run(fn)
    assert nbytes == 0 and [o for o, _ in others] == [None, None]
    assert [s.rank for s in whole.spans] == [0, 1, 2]
    assert [s.start_s for s in whole.spans] == pytest.approx([0, 1, 2], abs=0.5)
    assert whole.spans[1].action == Action(Op.SEND, 1, 0, 1, 2)
    assert len(whole.marks) == 3000 and whole.marks[-1].value == "Zeile\nπ"
    assert (whole.name, whole.clock, whole.backend) == ("ring of 0", "measured", "threads")


def test_an_empty_trace_travels_too(ranks):
    whole = ranks(2).run(lambda comm: clocks.gather_traces(comm, Trace("none")))[0]
    assert (whole.name, whole.spans) == ("none", [])
