"""A policy on the virtual clock meets the known staleness and clocks, and leaves a schedule of the same times."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lt_core.base.action import Action, Op
from lt_core.base.errors import UserError
from lt_core.engine.costs import Unit
from lt_core.engine.drive import drive
from lt_core.engine.simulate import simulate
from tests.policies import Asynchronous, OverTheWire, StaleSynchronous


class Speeds(Unit):
    """Seconds by rank."""

    def __init__(self, *seconds):
        super().__init__()
        object.__setattr__(self, "by_rank", seconds)

    def seconds(self, action):
        return self.by_rank[action.rank]


def mean(values):
    return sum(values) / len(values)


def test_one_worker_is_never_stale():
    policy = Asynchronous(1)
    s = drive(policy, Speeds(1), 10)
    assert set(policy.staleness[0]) == {0} and policy.version == 10
    assert s.name == "Asynchronous" and [a.batch for a in s.lanes[0]] == list(range(10))


def test_four_equal_workers_are_three_updates_behind():
    policy = Asynchronous(4)
    drive(policy, Speeds(1, 1, 1, 1), 400)
    assert {tau for stale in policy.staleness for tau in stale[4:]} == {3} and policy.version == 1600


def test_a_worker_ten_times_slower_is_thirty_behind():
    policy = Asynchronous(4)
    drive(policy, Speeds(1, 1, 1, 10), 400)
    assert set(policy.staleness[3][4:]) == {30}
    fast = [stale[4:] for stale in policy.staleness[:3]]
    assert max(map(max, fast)) == 3 and mean([mean(stale) for stale in fast]) == pytest.approx(2.10, abs=0.02)


@pytest.mark.parametrize(
    ("slack", "clocks"), [(0, [10, 10, 10]), (1, [11, 11, 10]), (3, [13, 13, 10]), (10, [20, 20, 10])]
)
def test_bounded_staleness(slack, clocks):
    policy = StaleSynchronous(3, slack)
    drive(policy, Speeds(1, 1, 10), 100)
    assert (policy.clock, policy.gap) == (clocks, slack + 1)


@pytest.mark.parametrize(("workers", "message_s"), [(4, 0.125), (4, 0.5), (4, 1.0), (8, 0.5)])
def test_a_server_over_the_wire_is_bound_by_its_link_or_by_its_workers(workers, message_s):
    policy = OverTheWire(workers)
    drive(policy, Unit(by={"F": 1.0}, alpha=message_s), 400)
    law = min(workers / (1 + 2 * message_s), 1 / (2 * message_s))
    assert policy.version / 400 == pytest.approx(law, rel=0.02)


def test_equal_times_are_not_one_moment():
    policy = Asynchronous(2)
    s = drive(policy, Speeds(1, 1), 2)
    assert [str(a) for lane in s.lanes for a in lane] == ["0F0", "1F1", "0F0", "2F1"]


def test_an_action_needs_the_last_end_of_each_rank_when_it_was_given():
    s = drive(Asynchronous(2), Speeds(1, 2), 3)
    known = {str(a) + f"@{a.rank}": [f"{n}@{n.rank}" for n in needs] for a, needs in s.needs.items()}
    assert known == {"0F0@0": [], "1F1@0": ["0F0@0"], "0F0@1": [], "2F2@0": ["1F1@0"]}


def test_the_needs_stand_in_the_order_of_the_ends():
    policy = Asynchronous(3)
    s = drive(policy, Speeds(1, 2, 3), 6)
    trace = simulate(s, Speeds(1, 2, 3))
    ends = {span.action: span.end_s for span in trace.spans}
    assert list(s.needs) == sorted(s.needs, key=lambda a: (ends[a], a.rank))


POLICIES = [lambda: Asynchronous(3), lambda: StaleSynchronous(3, 1), lambda: OverTheWire(3), lambda: OverTheWire(5)]


@given(st.sampled_from(POLICIES), st.floats(0.5, 30), st.sampled_from([0.0, 0.25, 1.0]), st.sampled_from([0, 2]))
def test_what_was_driven_is_a_schedule_of_the_same_times(make, until_s, message_s, node):
    costs = Unit(by={"F": 1.0}, alpha=message_s, node=node)
    s = drive(make(), costs, until_s).check()
    trace = simulate(s, costs)
    end_s = {span.action: span.end_s for span in trace.spans}
    times = [end_s[a] for a in s.needs]
    assert times == sorted(times)  # the order of the ends
    last_s = trace.makespan_s()
    assert drive(make(), costs, last_s) == s  # the last end is at that time, and not a hair earlier
    assert not times or len(drive(make(), costs, math.nextafter(last_s, 0)).needs) < len(times)


def test_what_is_not_over_did_not_happen_on_either_end():
    costs = Unit(by={"F": 1.0}, alpha=1.0)
    for until_s in (1.0, 1.5, 1.99):
        assert [str(a) for a in drive(OverTheWire(1), costs, until_s).check().actions()] == ["0F0"]
    ended = drive(OverTheWire(1), costs, 2.0).check()
    assert [str(a) for a in ended.actions()] == ["0F0", "0SEND0>1", "0ADD0<0"]


class Contended(Asynchronous):
    """Ranks 0 and 1 send to ranks 2 and 3 again and again: both links leave one node and enter one."""

    def next(self, rank):
        op, peer = (Op.SEND, rank + 2) if rank < 2 else (Op.COPY, rank - 2)
        return Action(op, 0, self.clock[rank], rank, peer)

    def done(self, action):
        self.clock[action.rank] += 1


def test_a_shared_nic_holds_on_the_virtual_clock_too():
    costs = Unit(alpha=1.0, node=2)
    s = drive(Contended(4), costs, 7.5).check()
    assert sum(len(lane) for lane in s.lanes[:2]) == 7  # one at a time, where two links would do 14
    assert simulate(s, costs).makespan_s() == 7


def test_nothing_to_do_ends_at_once():
    class Idle(Asynchronous):
        def next(self, rank):
            return None

    assert drive(Idle(2), Unit(), float("inf")).lanes == ((), ())


class Wrong(Asynchronous):
    """Gives what `answer` says."""

    def __init__(self, answer):
        super().__init__(2)
        self.next = answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda rank: Action(Op.F, 0, 0, 1),
            "Wrong gave 0F0 to rank 0; got an action of rank 1; expected one of rank 0",
        ),
        (lambda rank: Action(Op.F, 0, 0, rank), "Wrong gave 0F0 to rank 0 twice; try: count repeats in `batch`"),
    ],
)
def test_a_policy_that_gives_what_it_may_not(answer, message):
    with pytest.raises(UserError) as caught:
        drive(Wrong(answer), Unit(by={"F": 1.0}), 10)
    assert str(caught.value) == message


def test_time_that_stands_still_is_an_error():
    with pytest.raises(UserError, match=r"Asynchronous never gets past 0 s; try: give .*F.* seconds"):
        drive(Asynchronous(1), Unit(), 10)
