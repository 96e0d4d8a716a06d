"""A ring on real ranks, seen by `ltlab ring`: its three witnesses agree, and each planted fault is seen."""

from collections import Counter

import pytest

from lt_core.base.traffic import Tally, Traffic
from lt_core.cli.trial import Trial, on_each
from lt_core.comm import launch


def trial(size: int, elements: int) -> Trial:
    return Trial(elements, launch(on_each, size, elements, backend="threads"))


def changed(seen: Trial, rank: int, **what: object) -> Trial:
    return Trial(seen.elements, [one._replace(**what) if r == rank else one for r, one in enumerate(seen.seen)])


def test_four_ranks_and_8192_bytes_are_the_numbers_of_the_law():
    by_name = {quantity.name: quantity for quantity in trial(4, 1024).quantities()}
    assert by_name["bytes"].measured == [12_288] * 4
    assert by_name["messages"].measured == by_name["rounds"].measured == [6] * 4


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("elements", [1, 3, 10])
def test_law_simulation_and_run_agree_at_awkward_sizes(size, elements):
    seen = trial(size, elements)
    assert all(quantity.agree() for quantity in seen.quantities()), seen.quantities()
    assert seen.right() and seen.same_bits()


def test_the_same_on_warm_ranks(ranks):
    seen = Trial(1000, ranks(3).run(on_each, 1000))
    assert all(quantity.agree() for quantity in seen.quantities()), seen.quantities()
    assert seen.right() and seen.same_bits()
    assert seen.measured.makespan_s() > 0 and seen.simulated.makespan_s() > 0


def test_a_byte_too_many_is_seen():
    seen = trial(2, 10)
    sent = Traffic(Tally(Counter({0: 81}), Counter({0: 2})))
    wrong = [quantity.name for quantity in changed(seen, 1, traffic=sent).quantities() if not quantity.agree()]
    assert wrong == ["bytes"]


def test_a_round_that_is_missing_is_seen():
    seen = trial(3, 9)
    trace = seen.measured
    trace.spans = [s for s in trace.spans if s.rank != 2 or (s.action and s.action.batch != 1)]
    assert [quantity.name for quantity in seen.quantities() if not quantity.agree()] == ["rounds"]


def test_one_wrong_rank_and_one_other_bit_are_seen():
    seen = trial(2, 4)
    assert not changed(seen, 1, right=False).right()
    assert not changed(seen, 0, digest="0").same_bits()
