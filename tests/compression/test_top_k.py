"""Top-k keeps exactly k of a bucket and contracts as the law says; ranks that sent an index are added up."""

import pytest
import torch

from lt_core.base.errors import RankError, UserError
from lt_core.comm import threads
from lt_core.compression import Coarse, ErrorFeedback, Threshold, TopK
from lt_core.compression.ratio import kept
from lt_core.compression.top_k import bound_for
from tests.compression.alone import once, steps


def test_k_is_rounded_and_at_least_one():
    """Where k was rounded down to 0, a small tensor was never sent."""
    assert [kept(r, 10) for r in (0.01, 0.14, 0.16, 0.99, 1)] == [1, 1, 2, 10, 10]
    assert kept(0.5, 0) == 0


def test_it_chooses_over_the_whole_bucket():
    mean = once(TopK(0.5), a=torch.tensor([1.0, -4.0]), b=torch.tensor([[3.0], [0.5]]))
    assert mean["a"].tolist() == [0, -4] and mean["b"].tolist() == [[3], [0]]


def test_ties_are_cut_at_k_and_go_to_the_lower_index():
    assert once(TopK(0.5), x=torch.tensor([1.0, -1.0, 1.0, 1.0]))["x"].tolist() == [1, -1, 0, 0]


@pytest.mark.parametrize(("count", "rest"), [(1, 0.9905), (10, 0.923), (100, 0.557)])
def test_contraction_of_a_normal_gradient(count, rest):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1000, generator=generator, dtype=torch.float64)
    left = float(((x - once(TopK(count / 1000), x=x)["x"]) ** 2).sum() / (x**2).sum())
    assert left <= 1 - count / 1000 and left == pytest.approx(rest, abs=0.015)


def shared(comm):
    x = torch.tensor([[4.0, 1.0, 0.0], [8.0, 0.0, 1.0]][comm.rank])
    pairs = TopK(1 / 3).reduce({"x": x}, comm).mean["x"], Threshold(1.0).reduce({"x": x}, comm).mean["x"]
    return [mean.tolist() for mean in pairs]


def test_an_index_of_several_ranks_is_added_and_divided_by_all(ranks):
    for top, above in ranks(2).run(shared):
        assert top == [6, 0, 0] and above == [6, 0.5, 0.5]


def test_a_ratio_may_change_with_the_steps_of_each_bucket_and_is_remembered():
    reducer = TopK(lambda step: [1.0, 0.5, 0.25][step])
    x, y = {"x": torch.arange(1.0, 5)}, {"y": torch.arange(1.0, 5)}
    got = steps(lambda: reducer, [x, x, y])
    assert [int((r.mean[name] != 0).sum()) for r, name in zip(got, "xxy")] == [4, 2, 4]
    other = TopK(lambda step: [1.0, 0.5, 0.25][step])
    other.load_state_dict(reducer.state_dict())
    assert int((once(other, **x)["x"] != 0).sum()) == 1


def counted(reducer, buckets):
    return [sum(int((x != 0).sum()) for x in r.mean.values()) for r in steps(lambda: reducer, buckets)]


def by_step(step):
    return [1.0, 0.5, 0.25, 0.25][step]


@pytest.mark.parametrize("make", [lambda: TopK(by_step), lambda: Coarse(by_step, chunk=1)])
def test_a_bucket_has_made_as_many_steps_as_its_oldest_tensor_and_a_step_undone_is_none(make):
    """Counted by its first name a bucket began anew when another parameter came first: a warm-up started again."""
    x, y = torch.arange(1.0, 5), torch.arange(5.0, 9)
    assert counted(make(), [{"x": x}, {"x": x}, {"y": y, "x": x}, {"y": y}]) == [4, 2, 2, 1]
    reducer = make()
    assert counted(reducer, [{"x": x}, {"x": x}]) == [4, 2]
    reducer.undo(["x", "z"])
    reducer.undo(["x"])  # twice is once
    assert reducer.state_dict() == {"steps": {"x": 1}} and counted(reducer, [{"y": y, "x": x}]) == [4]
    reducer.undo(["x", "y"])
    assert reducer.state_dict() == {"steps": {"x": 1, "y": 0}}  # each its own
    counted(reducer, [{"x": x}])
    reducer.load_state_dict(reducer.state_dict())
    reducer.undo(["x"])
    assert reducer.state_dict() == {"steps": {"x": 2, "y": 0}}  # what was loaded has no step before
    around = ErrorFeedback(make())
    counted(around, [{"x": x}])
    around.undo(["x"])
    assert around.state_dict()["inner"] == {"steps": {"x": 0}}


def of_one_name(part):
    def ratio(step):
        return part

    return ratio


def other_ratios(comm, make):
    make(of_one_name([0.5, 0.25][comm.rank])).reduce({"x": torch.arange(1.0, 9)}, comm)


@pytest.mark.parametrize("make", [TopK, lambda ratio: Coarse(ratio, chunk=1)])
def test_ratios_by_step_that_differ_are_told_on_every_rank(make):
    """Ranks compared the names of their functions, which were one: messages of unequal length met."""
    with pytest.raises(RankError) as error:
        threads.run(other_ratios, 2, (make,), 20)
    words = "the ranks keep different parts of a bucket; got of 8 rank 0 keeps 4, rank 1 keeps 2; expected as many on"
    assert error.value.kind == "Mismatch" and words in str(error.value)


def test_a_threshold_lets_pass_what_is_as_large():
    assert once(Threshold(2.0), x=torch.tensor([1.9, 2.0, -3.0]))["x"].tolist() == [0, 2, -3]


def test_a_bound_from_a_sample_is_near_the_quantile():
    x = torch.randn(200_000, generator=torch.Generator().manual_seed(0))
    bound = bound_for(x, 0.1, torch.Generator().manual_seed(1), sample=0.01)
    assert 0.08 < float((x.abs() >= bound).float().mean()) < 0.12


@pytest.mark.parametrize("ratio", [0, -0.1, 1.5, float("nan")])
def test_a_ratio_is_a_part(ratio):
    with pytest.raises(UserError, match=f"the part that is sent; got {ratio:g}; expected above 0 and at most 1"):
        TopK(ratio)


def test_a_threshold_is_above_zero():
    with pytest.raises(UserError, match="a threshold lets pass what is larger; got 0; expected a bound above 0"):
        Threshold(0)
