"""What a user reads when a schedule cannot run: what, got, expected, try, and the schedule with the place marked."""

import pytest

from lt_core.base.errors import ScheduleError, UserError
from lt_core.base.schedule import Schedule
from lt_core.base.trace import Trace
from lt_core.engine.costs import Unit, of_cluster
from lt_core.engine.execute import execute
from lt_core.engine.simulate import simulate
from tests.typed import typed

WRONG = {
    "twins": (
        typed("0: 0F0 1F0 0F0"),
        """
        typed: 0F0 of rank 0 occurs twice; try: count repeats in `batch`
        0: !0F0 1F0 !0F0
        """,
    ),
    "missing need": (
        Schedule("typed", typed("0: 0F0\n1: 1F0").lanes, typed("0: 0F0 0F1\n1: 1F0", {"1F0": "0F1"}).needs),
        """
        typed: 1F0 of rank 1 needs 0F1 of rank 0, which is in no lane; try: add 0F1 or drop it
        0: 0F0 .
        1: .   !1F0
        """,
    ),
    "lone end": (
        typed("0: 0F0 0SEND_F0>1\n1: 1F0", {"0SEND_F0>1": "0F0"}),
        """
        typed: 0SEND_F0>1 of rank 0 has no other end on rank 1; try: give rank 1 its end
        0: 0F0 !0SEND_F0>1
        1: 1F0 .
        """,
    ),
    "taken twice": (
        typed("0: 0SEND0>1\n1: 0ADD0<0 0COPY0<0"),
        """
        typed: 0COPY0<0 of rank 1 shares its other end with 0SEND0>1; try: give rank 0 its end
        0: 0SEND0>1 .
        1: 0ADD0<0  !0COPY0<0
        """,
    ),
    "circle of needs": (
        typed("0: 0F0\n1: 1F0", {"0F0": "1F0", "1F0": "0F0"}),
        """
        typed: 0F0 of rank 0 waits for ever; got 0F0 (rank 0) waits for 1F0 (rank 1) waits for 0F0 (rank 0); \
try: reorder a lane or drop a need on the circle
        0: !0F0
        1: 1F0
        """,
    ),
    "deadlock": (
        typed("0: 0F0 0SEND_F0>1 0SEND_F1>1\n1: 0COPY_F1<0 0COPY_F0<0", {"0SEND_F0>1": "0F0"}),
        """
        typed: 0SEND_F0>1 of rank 0 waits for ever; got 0SEND_F0>1 (rank 0) waits for 0COPY_F0<0 (rank 1) \
waits for 0COPY_F1<0 (rank 1) waits for 0SEND_F1>1 (rank 0) waits for 0SEND_F0>1 (rank 0); \
try: reorder a lane or drop a need on the circle
        0: 0F0 !0SEND_F0>1 0SEND_F1>1
        1: .   0COPY_F1<0  0COPY_F0<0
        """,
    ),
    "another rank's lane": (
        Schedule("mixed", (typed("0: 0F0").lanes[0] + typed("1: 1F0").lanes[0],), {}),
        """
        mixed: 1F0 of rank 1 stands in a lane of another rank; expected one lane a rank, from rank 0 on
        0: 0F0 !1F0
        """,
    ),
    "two lanes of a rank": (
        Schedule("mixed", typed("0: 0F0").lanes + typed("0: 0F1").lanes, {}),
        """
        mixed: 0F0 of rank 0 stands in a lane of another rank; expected one lane a rank, from rank 0 on
        0: !0F0
        0: 0F1
        """,
    ),
    "to itself": (
        typed("0: 0SEND0>0 0ADD0<0"),
        """
        typed: 0SEND0>0 of rank 0 is sent to its own rank; try: leave it out
        0: !0SEND0>0+0ADD0<0
        """,
    ),
    "a count apart": (
        typed("0: 0SEND0>1*2\n1: 0ADD0<0*3"),
        """
        typed: 0SEND0>1*2 of rank 0 differs from its other end; got 0SEND0>1*2 against 0ADD0<0*3; expected one count
        0: !0SEND0>1*2
        1: 0ADD0<0*3
        """,
    ),
}


def lines(text):
    return [line.strip() for line in text.strip().splitlines()]


@pytest.mark.parametrize(("schedule", "text"), WRONG.values(), ids=WRONG)
def test_a_wrong_schedule(schedule, text):
    with pytest.raises(ScheduleError) as caught:
        schedule.check()
    assert lines(str(caught.value)) == lines(text)


@pytest.mark.parametrize("schedule", [schedule for schedule, _ in WRONG.values()], ids=WRONG)
def test_simulate_says_the_same_as_check(schedule):
    with pytest.raises(ScheduleError) as said:
        schedule.check()
    try:
        simulate(schedule, Unit())
    except ScheduleError as error:
        assert str(error) == str(said.value)
    else:  # it can finish all the same: only `check` looks at what costs nothing to ignore
        assert "its own rank" in str(said.value) or "one count" in str(said.value) or "one lane" in str(said.value)


def test_the_place_in_a_large_schedule():
    many = " ".join(f"0F{k}" for k in range(100))
    lanes = [f"0: {many} 0SEND_F0>1 0SEND_F1>1", "1: 0COPY_F1<0 0COPY_F0<0", *(f"{r}: {r}F0" for r in range(2, 20))]
    with pytest.raises(ScheduleError) as caught:
        typed("\n".join(lanes)).check()
    _, *shown = str(caught.value).splitlines()
    assert shown[0] == "0: ... 0F88 0F89 0F90 0F91 0F92 0F93 0F94 0F95 0F96 0F97 0F98 0F99 !0SEND_F0>1 0SEND_F1>1"
    assert [line.split(":")[0] for line in shown] == list("0123456") and max(map(len, shown)) < 140


class Nothing:
    """A machine that is never asked."""

    def run(self, actions):
        raise AssertionError("it ran")

    def abort(self, reason):
        raise AssertionError("it was aborted")


EXECUTED = {
    "a need on another rank": (
        typed("0: 0F0\n1: 1F0", {"1F0": "0F0"}),
        "typed: 1F0 of rank 1 needs 0F0 of rank 0; try: lower it to a message first, a SEND there and a COPY here",
    ),
    "another rank's lane": (
        Schedule("mixed", typed("0: 0F0").lanes + typed("0: 0F1").lanes, {}),
        "mixed: lane 1 holds 0F1 of rank 0; try: lane r is rank r's",
    ),
    "no such rank": (typed("0: 0F0"), "typed has no rank 1; expected 0 to 0"),
}


@pytest.mark.parametrize(("schedule", "text"), EXECUTED.values(), ids=EXECUTED)
def test_what_execute_refuses(schedule, text):
    with pytest.raises(UserError) as caught:
        execute(schedule, 1, Nothing(), Trace("t"))
    assert str(caught.value) == text


def test_a_price_that_is_not_known():
    from lt_core.base.cluster import H200_NODE

    (action,) = typed("0: 5F0").lanes[0]
    with pytest.raises(UserError) as caught:
        of_cluster(H200_NODE).seconds(action)
    assert str(caught.value) == "5F0 has no price; got a profile of 0 layers; expected at least 6"
