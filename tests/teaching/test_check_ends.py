"""Whatever hangs, takes long or is stopped: a check ends in seconds, and so do its ranks."""

import threading
import time

import pytest

from lt_core.teaching import check
from lt_core.teaching.checks import here, report
from lt_core.teaching.checks.ring_answers import reduce_scatter


def test_a_hang_ends_in_seconds_and_nothing_more_is_tried():
    begun_s = time.monotonic()
    found = check("20.reduce_scatter", lambda comm, x: comm.exchange([(x, 1 - comm.rank)], []), launch=None)
    assert time.monotonic() - begun_s < 10
    assert "Deadline: rank" in found.lines[0].why and {line.holds for line in found.lines[1:]} == {None}


def test_a_hang_in_one_property_leaves_the_others_undecided(monkeypatch):
    monkeypatch.setattr(here, "WHOLE_S", 0.5)

    def answer(comm, x):
        while x.numel() == 3:
            pass
        return reduce_scatter(comm, x)

    lines = {line.name: line for line in check("20.reduce_scatter", answer, launch=None).lines}
    assert [line.name for line in lines.values() if line.holds is False] == ["any length"]
    assert (
        "still running, it had not ended" in lines["any length"].why
        and "while x.numel() == 3:" in lines["any length"].why
    )
    assert lines["strided input"].why == "not judged yet, for a call did not end"


def test_slow_calls_are_not_tried_for_ever(monkeypatch):
    monkeypatch.setattr(report, "TRIED_S", 0.0)
    (first, *rest) = check("20.reduce_scatter", reduce_scatter, launch=None).lines
    assert first == (
        "returns a tensor like its input",
        None,
        "all calls together took more than 0 s; one is one of milliseconds",
    )
    assert {line.holds for line in rest} == {None}


def test_stop_ends_the_ranks_before_it_is_passed_on(monkeypatch):
    begun, ended, join = threading.Event(), threading.Event(), here._join

    def stopped(ranks, within_s):
        monkeypatch.setattr(here, "_join", join)
        assert begun.wait(20)
        raise KeyboardInterrupt

    def answer(comm, x):
        try:
            begun.set()
            while comm.rank == 0:
                pass
        finally:
            ended.set()

    monkeypatch.setattr(here, "_join", stopped)
    with pytest.raises(KeyboardInterrupt):
        check("20.reduce_scatter", answer, launch=None)
    assert ended.is_set()
