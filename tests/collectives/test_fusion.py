"""Fused gradients are the unfused ones: same values, fewer messages, the same runs on all ranks whoever is early."""

import pytest
import torch

from lt_core.base.errors import Mismatch, RankError, UserError
from lt_core.collectives import Mean, Pool, all_reduce, doubling, hierarchical, ring, tree
from lt_core.collectives.fusion import by_reducer, by_schedule, runs


@pytest.mark.parametrize(
    ("nbytes", "threshold", "found"),
    [
        ([], 8, []),
        ([8, 8, 8], 1, [[0], [1], [2]]),
        ([8, 8, 8], 16, [[0, 1], [2]]),
        ([8, 8, 8], 1000, [[0, 1, 2]]),
        ([40, 8, 8], 16, [[0], [1, 2]]),
        ([4, 40, 4], 16, [[0, 1], [2]]),
        ([0, 0, 8, 0], 8, [[0, 1, 2], [3]]),
    ],
)
def test_a_run_ends_where_it_holds_enough(nbytes, threshold, found):
    assert [list(part) for part in runs(nbytes, threshold)] == found


def pool(threshold_bytes, **like):
    launched = []
    made = Pool(like, threshold_bytes, lambda run: launched.append((run.number, list(run.grads))))
    return made, launched


def test_it_launches_as_soon_as_the_front_is_full_and_flushes_the_tail():
    made, launched = pool(16, w3=torch.zeros(1, 2), w2=torch.zeros(2), w1=torch.zeros(()))
    made.put("w3", torch.ones(1, 2))
    assert launched == []
    made.put("w2", torch.full((2,), 2.0))
    assert launched == [(0, ["w3", "w2"])]
    made.put("w1", torch.tensor(3.0))
    assert launched == [(0, ["w3", "w2"]), (1, ["w1"])]
    assert {name: grad.tolist() for name, grad in made.flush().items()} == {"w3": [[1, 1]], "w2": [2, 2], "w1": 3}


def test_who_is_early_waits_for_the_front():
    """Ranks whose gradients came in another order sent other messages, and waited for each other for ever."""
    made, launched = pool(8, w3=torch.zeros(2), w2=torch.zeros(2), w1=torch.zeros(2))
    for name in ("w1", "w2"):
        made.put(name)
        assert launched == []
    made.put("w3")
    assert launched == [(0, ["w3"]), (1, ["w2"]), (2, ["w1"])]


def test_gradients_of_a_run_lie_side_by_side():
    made, _ = pool(1000, a=torch.zeros(2, 3), b=torch.zeros(4))
    (run,) = made.runs
    run.flat.copy_(torch.arange(10.0))
    assert made.grads["a"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert made.grads["b"].tolist() == [6, 7, 8, 9]


def test_dtypes_have_pools_of_their_own():
    """A peer's fused buffer mixed dtypes."""
    half = torch.zeros(2, dtype=torch.bfloat16)
    made, launched = pool(8, a=torch.zeros(2), b=half, c=torch.zeros(2), d=half)
    for name in "abcd":
        made.put(name)
    assert launched == [(0, ["a"]), (1, ["c"]), (2, ["b", "d"])]
    assert [run.flat.dtype for run in made.runs] == [torch.float32, torch.float32, torch.bfloat16]


def test_what_cannot_be_put_or_flushed_says_so():
    made, _ = pool(8, a=torch.zeros(2), b=torch.zeros(2))
    made.put("a")
    with pytest.raises(UserError, match="a was put already, and not flushed; expected one of b"):
        made.put("a")
    with pytest.raises(UserError, match="z is not in the pool; expected one of b"):
        made.put("z")
    with pytest.raises(UserError, match=r"b has another shape; got \(1,\); expected \(2,\); try: a new pool"):
        made.put("b", torch.ones(1))
    with pytest.raises(UserError, match="the pool waits for gradients; got b; expected all of them; try: put zeros"):
        made.flush()
    with pytest.raises(UserError, match="a pool that is never full; got threshold_bytes=0; expected at least 1"):
        pool(0, a=torch.zeros(2))


SHAPES = {"w4": (3, 5), "w3": (7,), "w2": (), "w1": (0, 3), "w0": (2, 2)}


def gradients(rank, step):
    random = torch.Generator().manual_seed(100 * rank + step)
    return {name: torch.randn(shape, generator=random, dtype=torch.float64) for name, shape in SHAPES.items()}


def fused(comm, launch_of, threshold_bytes, steps=2):
    """The means of some steps, and how many messages of all-reduces; odd ranks are early with other gradients."""
    made = Pool({n: torch.zeros(s, dtype=torch.float64) for n, s in SHAPES.items()}, threshold_bytes, launch_of(comm))
    means, messages = [], 0
    for step in range(steps):
        before = comm.traffic.copy()
        grads = list(gradients(comm.rank, step).items())
        for name, grad in reversed(grads) if comm.rank % 2 else grads:
            made.put(name, grad)
        means.append({name: mean.clone() for name, mean in made.flush().items()})
        messages = (comm.traffic - before).counted.messages  # of the last: the first also asks whether all agree
    return means, messages, len(made.runs)


def unfused(comm, schedule_of, steps=2):
    found = []
    for step in range(steps):
        grads = gradients(comm.rank, step)
        found.append({n: all_reduce(comm, g, schedule_of(comm.size)) / comm.size for n, g in grads.items()})
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_the_same_bits_as_one_message_a_tensor(ranks, size):
    """The tree sums all elements in one order, wherever they lie."""

    def both(comm):
        launch_of = lambda comm: by_schedule(comm, lambda nbytes: tree.schedule(comm.size))  # noqa: E731
        return [fused(comm, launch_of, threshold) for threshold in (1, 128, 10**6)], unfused(comm, tree.schedule)

    for rank, (several, plain) in enumerate(ranks(size).run(both)):
        for (means, messages, count), expected in zip(several, (4, 2, 1)):  # w1 has no elements, and goes with w0
            assert count == expected
            assert messages == count * tree.law_messages(size, 1, rank)
            for mean, right in zip(means, plain, strict=True):
                assert all(torch.equal(mean[name], right[name]) for name in SHAPES)


def test_any_reducer_and_a_ring(ranks):
    def both(comm):
        reducers = fused(comm, lambda comm: by_reducer(comm, Mean(ring.schedule)), 128)
        schedules = fused(comm, lambda comm: by_schedule(comm, lambda nbytes: ring.schedule(comm.size)), 128)
        return reducers, schedules, unfused(comm, ring.schedule)

    results = ranks(3).run(both)
    for (reduced, sent, _), (summed, messages, _), plain in results:
        assert sent == messages == 2 * ring.law_messages(3, 22, 0)
        for step in (0, 1):
            for name in SHAPES:
                assert torch.equal(reduced[step][name], summed[step][name])
                assert torch.equal(summed[step][name], results[0][1][0][step][name])  # on every rank
                assert torch.allclose(summed[step][name], plain[step][name], rtol=0, atol=1e-12)


def test_the_hybrid_takes_each_run_by_its_bytes(ranks):
    def chosen(comm):
        asked = []

        def schedule_of(nbytes):
            asked.append((nbytes, hierarchical.hybrid(comm.size, nbytes, 100, group=2).name))
            return hierarchical.hybrid(comm.size, nbytes, 100, group=2)

        fused(comm, lambda comm: by_schedule(comm, schedule_of), 60)
        return asked

    assert ranks(4).run(chosen) == [[(120, "ring"), (64, "hierarchical"), (32, "hierarchical")]] * 4


def other_shapes(comm):
    made = Pool({"a": torch.zeros(3 + comm.rank)}, 4, by_schedule(comm, lambda nbytes: doubling.schedule(comm.size)))
    made.put("a")


def whole_numbers(comm):
    Pool({"a": torch.zeros(3).long()}, 4, by_schedule(comm, lambda nbytes: doubling.schedule(comm.size))).put("a")


@pytest.mark.parametrize(
    ("fn", "kind", "text"),
    [
        (other_shapes, Mismatch, "rank 0 has a (3,) torch.float32, rank 1 has a (4,) torch.float32"),
        (whole_numbers, UserError, "a mean needs fractions"),
    ],
)
def test_what_has_no_mean_is_refused_on_every_rank(ranks, fn, kind, text):
    with pytest.raises(RankError) as error:
        ranks(2).run(fn)
    assert error.value.kind == kind.__name__
    assert text in error.value.message
