"""An action survives being written and read; the two ends of a transfer know each other; verbs are one vocabulary."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lt_core.base.action import Action, Op
from lt_core.base.errors import UserError

numbers = st.integers(0, 10**6)
local = st.builds(Action, st.sampled_from(Op), numbers, numbers, numbers, st.just(-1), st.integers(1, 10**6))
wire = st.sampled_from([op for op in Op if op.stream in ("out", "in")])
ends = st.builds(Action, wire, numbers, numbers, numbers, numbers, st.integers(1, 10**6))


@pytest.mark.parametrize(
    ("action", "text"),
    [
        (Action(Op.F, 2), "2F0"),
        (Action(Op.COPY_B, 1, 3, 0, 2), "1COPY_B3<2"),
        (Action(Op.SEND, 3, 2, 0, 1, 4), "3SEND2>1*4"),
        (Action(Op.ADD, 3, 2, 1, 0, 4), "3ADD2<0*4"),
        (Action(Op.GATHER, 5, 1, 2), "5GATHER1"),
    ],
)
def test_text(action, text):
    assert (str(action), Action.parse(text, action.rank)) == (text, action)


@given(local | ends)
def test_what_was_written_is_read(action):
    assert Action.parse(str(action), action.rank) == action


@given(local | ends)
def test_it_crosses_between_processes(action):
    again = pickle.loads(pickle.dumps(action))
    assert again == action and hash(again) == hash(action) and again.op is action.op


@given(ends)
def test_both_ends_name_one_transfer(action):
    other = {"SEND": "ADD", "SEND_F": "COPY_F", "SEND_B": "COPY_B", "ADD": "SEND", "COPY": "SEND"}
    other |= {"COPY_F": "SEND_F", "COPY_B": "SEND_B"}
    if action.op.name in other:
        end = Action(Op[other[action.op.name]], action.unit, action.batch, action.peer, action.rank, action.count)
        assert end.transfer == action.transfer and {end.op.stream, action.op.stream} == {"out", "in"}


def test_a_gradient_and_an_output_of_one_stage_are_two_transfers():
    output, gradient = Action(Op.SEND_F, 1, 0, 0, 1), Action(Op.SEND_B, 1, 0, 0, 1)
    assert output.transfer != gradient.transfer


def test_who_is_on_the_wire():
    assert [Action(Op.SEND, 0, peer=1).wire, Action(Op.GATHER, 0).wire, Action(Op.F, 0).wire] == [True, False, False]


def test_each_verb_is_a_member_of_its_own():
    assert len({op.value for op in Op}) == len(Op.__members__) == len(list(Op)) == 20
    assert {op.stream for op in Op} == {"compute", "out", "in", "d2h", "h2d", "free"}


@pytest.mark.parametrize("text", ["", "F0", "2F", "2f0", "2Q0", "2F0>", "-1F0", "2F0*", " 2F0", "2F0>1*4 ", "2F0>-1"])
def test_what_is_no_action(text):
    with pytest.raises(UserError, match=r"is no action; expected like 2F0 or 3SEND2>1\*4; try: F, C, N, B"):
        Action.parse(text, 0)


@pytest.mark.parametrize("text", ["3SEND0<1", "3ADD0>1", "3F0>1", "3DROP0<1"])
def test_an_arrow_against_the_verb(text):
    with pytest.raises(UserError, match="points the wrong way"):
        Action.parse(text, 0)
