"""Waiting is what lies between a rank's coming to a collective and the coming of the last one."""

from lt_core.base import Span, Trace
from lt_core.base.waits import waited_s, with_waits


def called(*comes_s, end_s, name="all_reduce"):
    return [Span(rank, "out", name, at_s, end_s, 24) for rank, at_s in enumerate(comes_s)]


def shown(trace):
    return [(s.rank, s.name, s.start_s, s.end_s, s.nbytes) for s in trace.spans]


def test_all_but_the_last_wait_until_it_comes():
    trace = with_waits(Trace("sum", called(1.0, 3.0, 2.0, end_s=4.0)))
    assert shown(trace) == [
        (0, "waiting for rank 1", 1.0, 3.0, 0),
        (0, "all_reduce", 3.0, 4.0, 24),
        (1, "all_reduce", 3.0, 4.0, 24),
        (2, "waiting for rank 1", 2.0, 3.0, 0),
        (2, "all_reduce", 3.0, 4.0, 24),
    ]
    assert waited_s(trace) == 3.0


def test_each_call_has_its_own_last_rank():
    spans = [*called(0.0, 1.0, end_s=2.0), *called(4.0, 3.0, end_s=5.0)]
    names = [(s.rank, s.name) for s in with_waits(Trace("two sums", spans)).spans if s.name != "all_reduce"]
    assert names == [(0, "waiting for rank 1"), (1, "waiting for rank 0")]


def test_other_spans_stay_and_nobody_waits_where_all_come_at_once():
    work = Span(0, "compute", "work", 0.0, 1.0)
    trace = Trace("sum", [work, *called(1.0, 1.0, end_s=2.0)])
    assert with_waits(trace).spans == trace.spans and waited_s(with_waits(trace)) == 0.0
    assert waited_s(with_waits(trace, "broadcast")) == 0.0
