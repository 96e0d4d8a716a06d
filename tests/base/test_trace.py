"""A trace adds up: its figures are sums over its spans and levels, and traces of several ranks become one."""

import pytest

from lt_core.base.trace import Level, Mark, Span, Trace


def trace(rank=0, clock="measured", backend="gloo"):
    spans = [
        Span(rank, "compute", "0F0", 1.0, 2.0),
        Span(rank, "compute", "0B0", 4.0, 6.0),
        Span(rank, "out", "0SEND0>1", 2.0, 2.5, 80),
    ]
    levels = [Level(rank, 1.0, "activations", 8), Level(rank, 6.0, "activations", 0)]
    return Trace("t", spans, levels, [Mark(rank, 3.0, "loss", 0.5)], clock, backend)


def test_an_empty_trace_has_no_time():
    empty = Trace("empty")
    assert (empty.makespan_s(), empty.busy_s(0, "compute"), empty.idle_fraction(), empty.peak_bytes(0)) == (0, 0, 0, 0)
    assert empty.ranks() == [] and empty.order(0, "compute") == []


def test_times():
    t = trace()
    assert (t.makespan_s(), t.busy_s(0, "compute"), t.busy_s(0, "out"), t.busy_s(1, "out")) == (5.0, 3.0, 0.5, 0.0)


def test_idle_is_what_no_compute_fills_over_all_ranks():
    busy = Trace("t", [Span(0, "compute", "a", 0, 4), Span(1, "compute", "b", 1, 2), Span(1, "in", "c", 2, 4)])
    assert busy.idle_fraction() == 1 - 5 / 8


def test_order_is_by_start_not_by_place():
    t = Trace("t", [Span(0, "compute", "late", 2, 3), Span(0, "compute", "early", 0, 1), Span(1, "compute", "x", 0, 1)])
    assert t.order(0, "compute") == ["early", "late"]


def test_the_peak_counts_all_owners_together():
    levels = [Level(0, 0, "parameters", 100), Level(0, 1, "activations", 50), Level(0, 2, "parameters", 10)]
    levels += [Level(0, 3, "activations", 90), Level(1, 0, "parameters", 999)]
    assert (Trace("t", levels=levels).peak_bytes(0), Trace("t", levels=levels).peak_bytes(1)) == (150, 999)


def test_the_peak_counts_modules_apart():
    levels = [
        Level(0, 0, "activations", 5, "a"),
        Level(0, 1, "activations", 7, "b"),
        Level(0, 2, "activations", 0, "a"),
    ]
    assert Trace("t", levels=levels).peak_bytes(0) == 12


def test_merging_takes_offsets_away_and_starts_at_zero():
    whole = Trace.merge([trace(0), trace(1).shifted(10.0)], [0.0, 9.5])
    assert [(s.rank, s.name, s.start_s) for s in whole.spans] == [
        (0, "0F0", 0.0), (1, "0F0", 0.5), (0, "0SEND0>1", 1.0), (1, "0SEND0>1", 1.5), (0, "0B0", 3.0), (1, "0B0", 3.5),
    ]  # fmt: skip
    assert [x.at_s for x in whole.levels] == [0.0, 0.5, 5.0, 5.5] and [m.at_s for m in whole.marks] == [2.0, 2.5]
    assert (whole.name, whole.clock, whole.backend, whole.ranks()) == ("t", "measured", "gloo", [0, 1])


def test_merging_without_offsets_and_without_traces():
    assert Trace.merge([trace()]).makespan_s() == 5.0
    assert Trace.merge([]).spans == []
    with pytest.raises(ValueError):
        Trace.merge([trace(), trace(1)], [0.0])
