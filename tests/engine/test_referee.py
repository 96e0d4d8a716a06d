"""One referee for real ranks: a recorded run replays to the same bits, its rules hold, and whatever fails wakes all."""

import random
import threading
from collections import Counter

import pytest
import torch

from lt_core.base.action import Action, Op
from lt_core.base.errors import Aborted, Deadline, UserError
from lt_core.comm.control import served
from lt_core.comm.launch import launch
from lt_core.engine.costs import Unit
from lt_core.engine.referee import Referee
from lt_core.engine.simulate import simulate
from tests.policies import Asynchronous, OverTheWire, StaleSynchronous


def on_threads(size, fn):
    """What `fn(rank)` returned or raised, by rank."""
    results = [None] * size

    def main(rank):
        try:
            results[rank] = fn(rank)
        except BaseException as error:
            results[rank] = error

    threads = [threading.Thread(target=main, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(15)
    assert not any(thread.is_alive() for thread in threads)
    return results


def worked(referee, rank, work=lambda action: None):
    """Ask and do until it is over; how many actions it were."""
    done = 0
    while (action := referee.next(rank)) is not None:
        work(action)
        referee.done(action)
        done += 1
    return done


def gradient(weights, action):
    noise = torch.randn(weights.shape, dtype=weights.dtype, generator=torch.Generator().manual_seed(hash(action[1:4])))
    return noise * weights.abs().sqrt() + weights


class Learning(Asynchronous):
    """Adds each gradient to the weights when it arrives; the version is read when the action is given."""

    def __init__(self, workers):
        super().__init__(workers)
        self.weights = [torch.linspace(-1, 1, 16, dtype=torch.float64)]
        self.gradients = {}

    def done(self, action):
        super().done(action)
        self.weights.append(self.weights[-1] - 0.01 * self.gradients.pop(action))


def replayed(schedule):
    """The weights after the recorded order, in one thread."""
    weights = [torch.linspace(-1, 1, 16, dtype=torch.float64)]
    for action in schedule.needs:  # they stand in the order of the ends
        weights.append(weights[-1] - 0.01 * gradient(weights[action.unit], action))
    return weights[-1]


def test_the_recorded_order_replays_to_the_same_bits():
    orders = set()
    for seed in range(5):
        referee = Referee(Learning(4), lambda policy: policy.version >= 60)
        chance = random.Random(seed)
        hold = threading.Event()

        def work(action, referee=referee, chance=chance, hold=hold):
            referee.policy.gradients[action] = gradient(referee.policy.weights[action.unit], action)
            hold.wait(chance.random() * 1e-3)

        on_threads(4, lambda rank, referee=referee, work=work: worked(referee, rank, work))
        schedule = referee.schedule().check()
        assert torch.equal(replayed(schedule), referee.policy.weights[-1])
        orders.add(tuple(a.rank for a in schedule.needs))
    assert len(orders) > 1  # or nothing was asynchronous


def test_a_rank_that_may_not_go_on_waits_for_those_behind():
    referee = Referee(StaleSynchronous(3, 2), lambda policy: min(policy.clock) >= 10)
    hold = threading.Event()
    on_threads(3, lambda rank: worked(referee, rank, lambda action: hold.wait(0.004 if rank == 2 else 0)))
    assert referee.policy.gap <= 3 and min(referee.policy.clock) >= 10


def test_the_record_can_be_priced():
    referee = Referee(Asynchronous(2), lambda policy: policy.version >= 6)
    assert sum(on_threads(2, lambda rank: worked(referee, rank))) == len(list(referee.schedule().actions()))
    assert simulate(referee.schedule().check(), Unit(by={"F": 1.0})).makespan_s() >= 3


@pytest.mark.processes
def test_ranks_that_are_processes_ask_over_the_control_wire():
    referee = Referee(StaleSynchronous(2, 1), lambda policy: policy.version >= 12)

    def body(comm, asked):
        return worked(asked, comm.rank)

    done = launch(body, 2, served(referee), backend="gloo", timeout_s=30)
    schedule = referee.schedule().check()
    assert sum(done) == len(schedule.needs) >= 12 and [len(lane) for lane in schedule.lanes] == done
    assert referee.policy.gap <= 2


@pytest.mark.parametrize("workers", [1, 3])
def test_over_the_wire_transfers_end_for_both_and_none_is_left_open(workers):
    referee = Referee(OverTheWire(workers), lambda policy: policy.version >= 12, deadline_s=5)
    assert all(isinstance(done, int) for done in on_threads(workers + 1, lambda rank: worked(referee, rank)))
    schedule = referee.schedule().check()
    verbs = Counter(a.op for a in schedule.actions())
    assert verbs[Op.ADD] >= 12 and verbs[Op.SEND] == verbs[Op.ADD] + verbs[Op.COPY]


def test_who_says_first_that_a_transfer_is_over_waits_for_the_other():
    referee = Referee(OverTheWire(1), lambda policy: False)
    said = threading.Event()

    def rank(r):
        if r == 1:
            said.wait(5)
            assert [str(a) for a in referee.schedule().check().actions()] == ["0F0"]
            return referee.done(referee.next(1))
        for _ in range(2):
            action = referee.next(0)
            if action.peer >= 0:
                said.set()
            referee.done(action)
        return [str(a) for a in referee.schedule().check().actions()]

    assert on_threads(2, rank) == [["0F0", "0SEND0>1", "0ADD0<0"], None]


def test_an_end_whose_other_end_never_comes_did_not_happen():
    referee = Referee(OverTheWire(1), lambda policy: False, deadline_s=0.05)
    with pytest.raises(Deadline) as caught:
        worked(referee, 0)
    assert str(caught.value) == "rank 0 has waited 0.05 s for the other end of 0SEND0>1: rank 1 has not come"
    assert [str(a) for a in referee.schedule().check().actions()] == ["0F0"]


def test_it_is_over_when_nobody_can_get_anything():
    class Twice(Asynchronous):
        def next(self, rank):
            return super().next(rank) if self.clock[rank] < 2 else None

    referee = Referee(Twice(3), lambda policy: False)
    assert on_threads(3, lambda rank: worked(referee, rank)) == [2, 2, 2]


class Broken(StaleSynchronous):
    """Fails when rank 1 asks for the third time; the others cannot go on without it."""

    def next(self, rank):
        if rank == 1 and self.clock[1] == 2:
            raise KeyError("the policy's own")
        return super().next(rank)


def test_the_first_error_is_its_ranks_own_and_wakes_the_others():
    referee = Referee(Broken(3, 0), lambda policy: False)
    errors = on_threads(3, lambda rank: worked(referee, rank))
    assert type(errors[1]) is KeyError and errors[1].args == ("the policy's own",)
    assert [str(errors[r]) for r in (0, 2)] == ['rank 1 failed first: KeyError: "the policy\'s own"'] * 2
    assert {type(errors[r]) for r in (0, 2)} == {Aborted}


def test_an_error_of_until_is_its_ranks_own_and_wakes_the_others():
    """They waited until their deadline for the rank which it had ended."""
    raised = []

    def until(policy):
        if policy.version >= 2 and not raised:
            raised.append(KeyError("until's own"))
            raise raised[0]
        return False

    referee = Referee(StaleSynchronous(2, 0), until, deadline_s=10)
    errors = sorted(on_threads(2, lambda rank: worked(referee, rank)), key=lambda error: type(error) is Aborted)
    assert errors[0] is raised[0]
    assert type(errors[1]) is Aborted and str(errors[1]).endswith('failed first: KeyError: "until\'s own"')


def test_abort_wakes_who_waits():
    referee = Referee(StaleSynchronous(2, 0), lambda policy: False)
    asked = threading.Event()

    def rank(r):
        if r == 1:
            asked.wait(5)
            referee.abort("rank 1 was told to stop")
            return referee.next(1)
        referee.done(referee.next(0))
        asked.set()
        return referee.next(0)

    assert [str(error) for error in on_threads(2, rank)] == ["rank 1 was told to stop"] * 2
    with pytest.raises(Aborted):
        referee.next(0)


def test_a_wait_that_lasts_too_long_says_who_holds_it_up():
    referee = Referee(StaleSynchronous(2, 0), lambda policy: False, deadline_s=0.05)
    assert str(referee.next(1)) == "0F0"
    with pytest.raises(Deadline) as caught:
        worked(referee, 0)
    assert str(caught.value) == "rank 0 has waited 0.05 s for its next action: rank 1 is at 0F0"
    with pytest.raises(Aborted, match="rank 0 has waited"):
        referee.done(Action(Op.F, 0, 0, 1))


def test_what_was_not_given_cannot_end():
    referee = Referee(Asynchronous(1), lambda policy: False)
    with pytest.raises(UserError) as caught:
        referee.done(Action(Op.F, 7, 0, 0))
    assert str(caught.value) == "7F0 of rank 0 is not what it was given; try: done(next(rank))"
