"""Rounds of messages become a schedule: each rank waits for its own round before, and for nothing else."""

import pytest

from lt_core.base.action import Action
from lt_core.base.errors import UserError
from lt_core.collectives.rounds import ADD, COPY, Message, of_rounds


def lanes(schedule):
    return [" ".join(map(str, lane)) for lane in schedule.lanes]


def test_no_rounds_leave_every_rank_idle():
    schedule = of_rounds("nothing", 3, [])
    assert schedule.lanes == ((), (), ())
    assert schedule.check().size == 3


def test_a_message_has_two_ends():
    schedule = of_rounds("one", 2, [[Message(0, 1, 3, ADD, 4)]])
    assert lanes(schedule) == ["3SEND0>1*4", "3ADD0<0*4"]
    assert schedule.check().needs == dict.fromkeys(schedule.actions(), ())


def test_a_round_is_one_exchange_with_sends_first():
    swap = [Message(1, 0, 0, COPY), Message(0, 1, 0, COPY)]
    schedule = of_rounds("swap twice", 2, [swap, swap]).check()
    assert lanes(schedule) == ["0SEND0>1 0COPY0<1 0SEND1>1 0COPY1<1", "0SEND0>0 0COPY0<0 0SEND1>0 0COPY1<0"]
    assert [len(exchange) for exchange in schedule.exchanges(0)] == [2, 2]


def test_a_round_needs_the_last_round_in_which_its_rank_took_part():
    schedule = of_rounds("line", 3, [[Message(0, 1, 0, ADD)], [Message(1, 2, 0, ADD)], [Message(2, 0, 0, COPY)]])
    needs = {str(a): " ".join(map(str, n)) for a, n in schedule.check().needs.items()}
    assert needs == {
        "0SEND0>1": "",
        "0ADD0<0": "",
        "0SEND1>2": "0ADD0<0",
        "0ADD1<1": "",
        "0SEND2>0": "0ADD1<1",
        "0COPY2<2": "0SEND0>1",
    }
    assert all(n.rank == a.rank for a, before in schedule.needs.items() for n in before)


def test_idle_ranks_hold_up_nobody():
    pairs = of_rounds("pairs", 4, [[Message(0, 1, 0, ADD)], [Message(2, 3, 0, ADD)]])
    assert pairs.check().grid() == "0: 0SEND0>1\n1: 0ADD0<0\n2: 0SEND1>3\n3: 0ADD1<2"


@pytest.mark.parametrize("size", [0, -1])
def test_no_ranks_are_refused(size):
    with pytest.raises(UserError, match=f"^ring needs ranks; got {size} ranks; expected at least 1$"):
        of_rounds("ring", size, [])


def test_a_rank_that_is_not_there_is_refused():
    with pytest.raises(UserError, match="line has no rank 2; got 0ADD1<1 in round 1; expected ranks 0 to 1"):
        of_rounds("line", 2, [[Message(0, 1, 0, ADD)], [Message(1, 2, 0, ADD)]])


def test_the_ends_are_one_transfer():
    send, add = Message(2, 5, 7, ADD, 3).ends(4)
    assert send == Action.parse("7SEND4>5*3", 2)
    assert add == Action.parse("7ADD4<2*3", 5)
    assert send.transfer == add.transfer
