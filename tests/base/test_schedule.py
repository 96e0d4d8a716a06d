"""A schedule is plain data: drawn as it was typed, cut in exchanges, checked; its errors are in tests/test_messages."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lt_core.base.schedule import Schedule
from tests.typed import gpipe, pipeline, typed

STAIRCASE = """
0: 0F0 0F1 0F2 .   .   0B2 0B1 0B0
1: .   1F0 1F1 1F2 1B2 1B1 1B0 .
"""
NEEDS = {
    "1F0": "0F0", "1F1": "0F1", "1F2": "0F2", "1B2": "1F2", "1B1": "1F1", "1B0": "1F0",
    "0B2": "1B2", "0B1": "1B1", "0B0": "1B0",
}  # fmt: skip


def test_a_typed_staircase_is_drawn_as_it_was_typed():
    assert typed(STAIRCASE, NEEDS).check().grid() == STAIRCASE.strip()


def test_streams_share_a_cell():
    drawn = typed("0: 0F0 0OUT0 1F0 1OUT0", {"0OUT0": "0F0", "1OUT0": "1F0"}).grid()
    assert drawn == "0: 0F0 0OUT0+1F0 1OUT0"


def test_a_mark():
    s = typed("0: 0F0 0F1")
    assert s.grid(mark=s.lanes[0][1]) == "0: 0F0 !0F1"


def test_nothing():
    assert Schedule("nothing", (), {}).check().grid() == ""
    assert Schedule("idle", ((), ()), {}).check().grid() == "0:\n1:"


def test_size_and_actions():
    s = typed(STAIRCASE, NEEDS)
    assert s.size == 2
    assert " ".join(map(str, s.actions())) == "0F0 0F1 0F2 0B2 0B1 0B0 1F0 1F1 1F2 1B2 1B1 1B0"


@pytest.mark.parametrize(
    ("drawing", "needs", "runs"),
    [
        ("0: 0SEND0>1 1ADD0<1\n1: 1SEND0>0 0ADD0<0", {}, "0SEND0>1+1ADD0<1"),
        ("0: 0SEND_F0>1 0SEND_F1>1\n1: 0COPY_F0<0 0COPY_F1<0", {}, "0SEND_F0>1+0SEND_F1>1"),
        ("0: 0F0 0SEND_F0>1 1COPY_B0<1\n1: 0COPY_F0<0 1SEND_B0>0", {"0SEND_F0>1": "0F0"}, "0F0 0SEND_F0>1 1COPY_B0<1"),
        ("0: 0F0 0F1 0GATHER0 1GATHER0", {}, "0F0 0F1 0GATHER0 1GATHER0"),
    ],
)
def test_exchanges_are_wire_actions_with_equal_needs(drawing, needs, runs):
    exchanges = typed(drawing, needs).exchanges(0)
    assert " ".join("+".join(map(str, run)) for run in exchanges) == runs


@given(st.integers(1, 4), st.integers(1, 5))
def test_a_drawing_holds_all_that_matters(stages, batches):
    s = gpipe(stages, batches).check()
    again = pipeline(s.grid())
    assert again.grid() == s.grid()
    for lane, typed_lane in zip(s.lanes, again.lanes):
        for stream in ("compute", "out", "in"):
            assert [a for a in typed_lane if a.op.stream == stream] == [a for a in lane if a.op.stream == stream]


def test_it_crosses_between_processes_without_its_graph():
    s = typed(STAIRCASE, NEEDS).check()
    again = pickle.loads(pickle.dumps(s))
    assert again == s and "tasks" in s.__dict__ and "tasks" not in again.__dict__
    assert again.check().grid() == s.grid()


def test_the_graph_is_made_once():
    s = typed(STAIRCASE, NEEDS)
    assert s.tasks is s.tasks
