"""What a reducer loses is sent later: conservation on every rank, the order of the learning rate, state, dtypes."""

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.collectives import Mean
from lt_core.comm import threads
from lt_core.compression import (
    QSGD,
    Coarse,
    ErrorFeedback,
    GradZip,
    MomentumCorrection,
    OneBit,
    PowerSGD,
    TernGrad,
    Threshold,
    TopK,
    deep_gradient_compression,
)
from tests.compression.alone import steps

LOSSY = {
    "one bit": OneBit,
    "terngrad": TernGrad,
    "qsgd": lambda: QSGD(2, 16),
    "top-k": lambda: TopK(0.2),
    "threshold": lambda: Threshold(1.0),
    "coarse": lambda: Coarse(0.4, 16),
    "power sgd": lambda: PowerSGD(1),
    "grad zip": lambda: GradZip(1),
}


def places(make, gradient, count):
    """Which element each step sends."""
    sent = steps(make, [{"x": torch.tensor(gradient)}] * count)
    return [int(r.mean["x"].abs().argmax()) for r in sent]


def test_with_memory_every_element_has_its_turn():
    """A peer's memory was there and never called: only the largest element was ever sent, step after step."""
    assert places(lambda: ErrorFeedback(TopK(0.25)), [4.0, 3, 2, 1], 7) == [0, 1, 0, 2, 1, 0, 3]
    assert places(lambda: TopK(0.25), [4.0, 3, 2, 1], 7) == [0] * 7
    assert sorted(places(lambda: ErrorFeedback(TopK(0.5)), [4.0, 3], 14)) == [0] * 7 + [1] * 7


def gradient(rank, step, dtype=torch.float64):
    generator = torch.Generator().manual_seed(100 * rank + step)
    shapes = {"w": (12, 9), "b": (9,), "s": ()}
    return {n: torch.randn(s, generator=generator, dtype=torch.float64).to(dtype) for n, s in shapes.items()}


def constant(rank, step):
    return {"x": torch.tensor([4.0, 3, 2, 1], dtype=torch.float64)}


def conserved(comm, gradient_of, steps):
    """Largest faults of the sums over steps, and of each step's mean over ranks, of all reducers."""
    worst = {}
    for name, make in LOSSY.items():
        reducer, produced, sent, faults = ErrorFeedback(make()), 0.0, 0.0, []
        before = 0.0
        for step in range(steps):
            grads = gradient_of(comm.rank, step)
            got = reducer.reduce(grads, comm)
            flat = [torch.cat([x[n].reshape(-1) for n in grads]) for x in (grads, got.sent, got.mean)]
            produced, sent = produced + flat[0], sent + flat[1]
            residual = torch.cat([reducer.residual(n).reshape(-1) for n in grads])
            faults.append((sent + residual - produced).abs().max())
            step_sum = torch.stack([residual - before - flat[0]])
            comm.all_reduce(step_sum)
            faults.append((step_sum / comm.size + flat[2]).abs().max())
            before = residual.clone()
        worst[name] = max(map(float, faults))
    return worst


@pytest.mark.parametrize(("size", "gradient_of", "steps"), [(3, gradient, 5), (2, constant, 8)])
def test_no_gradient_is_lost_or_counted_twice(ranks, size, gradient_of, steps):
    """mean(memories) + mean = mean(gradients) + mean(memories before): a peer averaged twice once it compressed."""
    for worst in ranks(size).run(conserved, gradient_of, steps):
        assert set(worst) == set(LOSSY) and max(worst.values()) < 1e-12, worst


WITH_MEMORY = {name: lambda make=make: ErrorFeedback(make()) for name, make in LOSSY.items()}
WITH_MEMORY["mean"] = lambda: ErrorFeedback(Mean())
WITH_MEMORY["dgc"] = lambda: MomentumCorrection(TopK(0.2), 0.9, masking=False)


def waiting(reducer):
    """What this rank remembers."""
    state = reducer.state_dict()
    return {n: x.clone() for key in ("residual", "velocity", "waiting") for n, x in state.get(key, {}).items()}


def skipped(comm, make):
    """Six steps of two buckets; in the third, one rank's second bucket has a nan, so that nobody takes that step."""
    reducer, produced, taken, u = make(), 0.0, 0.0, 0.0
    for step in range(6):
        grads = gradient(comm.rank, step)
        buckets, before = [{"w": grads.pop("w")}, grads], waiting(reducer)
        if step == 2 and comm.rank == 1:
            buckets[1]["b"][3] = float("nan")
        got = [reducer.reduce(bucket, comm) for bucket in buckets]
        if not all(torch.isfinite(x).all() for one in got for x in one.mean.values()):
            assert step == 2
            reducer.undo(("w", "b", "s"))
            reducer.undo(("w", "b", "s"))  # once is enough, and twice is once
            after = waiting(reducer)
            assert all(torch.equal(after[n], before[n]) for n in before)
            continue
        u = buckets[0]["w"] + (0.9 * u if isinstance(reducer, MomentumCorrection) else 0)
        produced, taken = produced + u, taken + got[0].sent["w"]
    return float((taken + waiting(reducer)["w"] - produced).abs().max())


@pytest.mark.parametrize("make", WITH_MEMORY.values(), ids=WITH_MEMORY)
def test_a_step_that_nobody_takes_loses_nothing_that_waited(make):
    """The bucket beside the spoiled one had sent of its memory what no weight ever got."""
    assert max(threads.run(skipped, 2, (make,), 20)) < 1e-12


def test_a_mean_that_its_own_dtype_cannot_hold_is_not_finite_either():
    """64,000 waited and 64,000 came: the mean in 32 bits was finite, the memory forgot it, the weights got inf."""
    for reducer in (ErrorFeedback(Threshold(70_000.0)), MomentumCorrection(Threshold(70_000.0), 0.0)):
        first, second = steps(lambda reducer=reducer: reducer, [{"x": torch.tensor([64_000.0]).half()}] * 2)
        assert first.mean["x"] == 0 and second.mean["x"].isinf() and waiting(reducer)["x"] == 64_000


def in_sixteen_bits(comm, make, dtype):
    """How far the sum of all means is from that of all gradients: with what waits, and without."""
    reducer, total = make(), 0.0
    for step in range(20):
        grads = gradient(comm.rank, step, dtype)
        mean = reducer.reduce(grads, comm).mean["w"]
        assert mean.dtype == dtype
        total = total + mean.double()
    both = torch.stack(
        [sum(gradient(comm.rank, k, dtype)["w"].double() for k in range(20)), waiting(reducer)["w"].double()]
    )
    comm.all_reduce(both)
    produced, waits = both / comm.size
    return float((total + waits - produced).abs().max()), float((total - produced).abs().max())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(
    "make",
    [
        lambda: ErrorFeedback(Mean()),
        lambda: ErrorFeedback(TopK(0.5)),
        lambda: ErrorFeedback(PowerSGD(2)),
        lambda: MomentumCorrection(TopK(0.5), 0.0),
    ],
    ids=["mean", "top-k", "power sgd", "dgc"],
)
def test_what_a_mean_loses_in_its_own_sixteen_bits_waits_too(make, dtype):
    """It was rounded when nobody looked any more: 20 roundings of a bfloat16 are more than one of its steps."""
    for fault, late in threads.run(in_sixteen_bits, 3, (make, dtype), 20):
        assert fault < 2e-5 and late > 100 * fault


class FailsSecond:
    """A reducer whose second step fails."""

    def __init__(self):
        self.inner, self.calls = TopK(0.5), 0

    def reduce(self, grads, comm):
        self.calls += 1
        if self.calls == 2:
            raise FloatingPointError("no mean today")
        return self.inner.reduce(grads, comm)

    def state_dict(self):
        return self.inner.state_dict()


@pytest.mark.parametrize("around", [ErrorFeedback, MomentumCorrection])
@pytest.mark.parametrize(
    ("second", "words"),
    [
        (constant(0, 1), "no mean today"),
        ({"x": torch.tensor([4, 3, 2, 1])}, "a mean needs fractions"),
        ({"x": torch.ones(4).to_sparse()}, "the mean of x"),
    ],
    ids=["inside", "whole numbers", "sparse"],
)
def test_where_a_step_fails_there_is_none_to_undo(around, second, words):
    """The step before came back, which had been taken: its gradient was applied, and waited once more."""
    reducer = around(FailsSecond())
    steps(lambda: reducer, [constant(0, 0)])
    before = waiting(reducer)
    with pytest.raises((FloatingPointError, UserError), match=words):
        steps(lambda: reducer, [second])
    reducer.undo(["x"])
    after = waiting(reducer)
    assert before["x"].any() and all(torch.equal(after[name], x) for name, x in before.items())


def virtual(comm, dtype):
    """x = w - mean of the memories walks as plain SGD does, under a falling rate. Alistarh and others 2018."""
    rate, w = [1.0], torch.ones(30, dtype=torch.float64)
    reducer, plain, faults = ErrorFeedback(TopK(0.1), lambda: rate[0]), w.clone(), []
    for step in range(40):
        rate[0] = 0.5 / (1 + step)
        g = torch.randn(30, generator=torch.Generator().manual_seed(comm.rank + 7 * step), dtype=torch.float64) + w
        g = g.to(dtype)
        w = w - rate[0] * reducer.reduce({"w": g}, comm).mean["w"].double()
        both = torch.stack([g.double(), reducer.residual("w").double()])
        comm.all_reduce(both)
        mean_gradient, memory = both / comm.size
        plain = plain - rate[0] * mean_gradient
        faults.append(float((w - memory - plain).abs().max()))
    return max(faults)


@pytest.mark.parametrize(("dtype", "most"), [(torch.float64, 1e-14), (torch.bfloat16, 1e-6)])
def test_the_rate_is_folded_in_before_the_memory(ranks, dtype, most):
    """Also into what rounding takes from a mean in bfloat16, whose memory has 32 bits."""
    assert max(ranks(2).run(virtual, dtype)) < most


def test_an_exact_reducer_leaves_no_memory_and_bfloat16_is_remembered_in_32_bits():
    grads = gradient(0, 0, torch.bfloat16)
    reducer = ErrorFeedback(TopK(0.2))
    (got,) = steps(lambda: reducer, [grads])
    assert {x.dtype for x in got.mean.values()} == {torch.bfloat16}
    assert {x.dtype for x in reducer.state_dict()["residual"].values()} == {torch.float32}
    exact = ErrorFeedback(Mean())
    (got,) = steps(lambda: exact, [grads])
    assert all(torch.equal(got.mean[n], grads[n]) and not exact.residual(n).any() for n in grads)


STATEFUL = {name: lambda make=make: ErrorFeedback(make()) for name, make in LOSSY.items()}
STATEFUL["dgc"] = lambda: deep_gradient_compression(0.2)


@pytest.mark.parametrize("make", STATEFUL.values(), ids=STATEFUL)
def test_a_saved_state_goes_on_bit_by_bit(make):
    """A peer's step after a load was another one, for a part of the state was not in what it saved."""
    whole = steps(make, [gradient(0, k) for k in range(7)])
    first, second = make(), make()
    steps(lambda: first, [gradient(0, k) for k in range(5)])
    second.load_state_dict(first.state_dict())
    steps(lambda: first, [gradient(1, 9)])  # what was saved is a copy
    rest = steps(lambda: second, [gradient(0, k) for k in (5, 6)])
    assert all(torch.equal(a.mean[n], b.mean[n]) for a, b in zip(whole[5:], rest, strict=True) for n in a.mean)


def test_a_state_can_be_written_without_pickled_code(tmp_path):
    """A peer's state held its process group, which cannot be pickled."""
    reducer = ErrorFeedback(PowerSGD(1))
    steps(lambda: reducer, [gradient(0, 0)])
    torch.save(reducer.state_dict(), tmp_path / "state.pt")
    reducer.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert set(reducer.state_dict()["inner"]["right"]) == {"w"}


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({}, "ErrorFeedback did not write this state; got an empty one; expected residual, inner"),
        ({"residual": 3, "inner": {}}, "this is no memory; got int; expected tensors by name"),
        ({"residual": {}, "inner": 3}, "this is no state of a reducer; got int"),
        ({"residual": {}, "inner": {"right": {}}}, "TopK did not write this state; got right; expected steps"),
    ],
)
def test_another_state_is_refused(state, words):
    with pytest.raises(UserError, match=words):
        ErrorFeedback(TopK(0.5)).load_state_dict(state)


@pytest.mark.parametrize("around", [ErrorFeedback, MomentumCorrection])
@pytest.mark.parametrize(
    ("inner", "kept"),
    [
        (lambda: ErrorFeedback(TopK(0.5)), "ErrorFeedback, which keeps its residual"),
        (lambda: deep_gradient_compression(), "MomentumCorrection, which keeps its waiting"),
    ],
)
def test_two_memories_are_one_too_many(around, inner, kept):
    """Both kept what was not sent: ten gradients of (4, 3) arrived as (36, 33)."""
    with pytest.raises(UserError, match=f"what waits would be remembered twice; got {kept}; expected a reducer with"):
        around(inner())


def test_a_rate_is_above_zero():
    with pytest.raises(UserError, match="what waits is scaled by the learning rate; got 0; expected a rate above 0"):
        steps(lambda: ErrorFeedback(TopK(0.5), lambda: 0), [gradient(0, 0)])
