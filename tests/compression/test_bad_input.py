"""inf and nan on one rank are seen by all and remembered by none; zeros, constants, denormals; changed shapes."""

import pytest
import torch

from lt_core.base.errors import RankError, UserError
from lt_core.collectives import Mean
from lt_core.comm import threads
from lt_core.comm.contract import under_contract
from lt_core.compression import (
    QSGD,
    Coarse,
    ErrorFeedback,
    GradZip,
    Half,
    MomentumCorrection,
    OneBit,
    Packed,
    PowerSGD,
    TernGrad,
    Threshold,
    TopK,
)
from tests.compression.alone import once, steps

REDUCERS = {
    "half": Half,
    "one bit": OneBit,
    "terngrad": TernGrad,
    "qsgd": lambda: QSGD(4, 16),
    "packed": lambda: QSGD(4, 16, Packed()),
    "top-k": lambda: TopK(0.2),
    "threshold": lambda: Threshold(0.5),
    "coarse": lambda: Coarse(0.4, 16),
    "power sgd": lambda: PowerSGD(1),
    "grad zip": lambda: GradZip(1),
    "dgc": lambda: MomentumCorrection(TopK(0.2), 0.9, clip=1.0),
}


def remembering(make):
    """The reducer, with a memory where it has none."""
    reducer = make()
    return reducer if isinstance(reducer, MomentumCorrection) else ErrorFeedback(reducer)


KEPT = ("residual", "velocity", "waiting", "right", "fixed", "odd")


def gradient(rank, step, dtype=torch.float32):
    generator = torch.Generator().manual_seed(100 * rank + step)
    return {"w": torch.randn(12, 9, generator=generator).to(dtype), "b": torch.randn(9, generator=generator).to(dtype)}


def memories(state):
    """All that is remembered of w and b."""
    kept = [x for name in KEPT for x in state.get(name, {}).values()]
    return [*kept, *(memories(state["inner"]) if "inner" in state else [])]


def element(grads, value):
    grads["w"][3, 4] = value


def everything(grads, value):
    for x in grads.values():
        x.fill_(value)


def spoiled(comm, value, guilty, spoil):
    """Of each reducer: faults found after one bad step."""
    faults = []
    for name, make in REDUCERS.items():
        reducer = remembering(make)
        for step in range(2):
            reducer.reduce(gradient(comm.rank, step), comm)
        before, grads = memories(reducer.state_dict()), gradient(comm.rank, 2)
        if comm.rank == guilty:
            spoil(grads, value)
        mean = reducer.reduce(grads, comm).mean
        if all(torch.isfinite(x).all() for x in mean.values()):
            faults.append(f"{name}: hidden from rank {comm.rank}")
        after = memories(reducer.state_dict())
        if not after or not all(torch.equal(a, b) for a, b in zip(before, after)):
            faults.append(f"{name}: remembered on rank {comm.rank}")
        if not all(torch.isfinite(x).all() for x in reducer.reduce(gradient(comm.rank, 3), comm).mean.values()):
            faults.append(f"{name}: still there one step later")
    return faults


@pytest.mark.parametrize(
    ("value", "guilty", "spoil"),
    [
        (float("nan"), 0, element),
        pytest.param(float("inf"), 1, element, marks=pytest.mark.full),
        pytest.param(-float("inf"), 2, element, marks=pytest.mark.full),
        (float("nan"), 1, everything),  # more than a sparse code sends: the rest stayed in the memory for good
    ],
)
def test_what_is_not_finite_on_one_rank_is_seen_by_all_and_remembered_by_none(ranks, value, guilty, spoil):
    assert ranks(3).run(spoiled, value, guilty, spoil) == [[]] * 3


@pytest.mark.parametrize("make", REDUCERS.values(), ids=REDUCERS)
def test_zeros_constants_and_denormals(make):
    for value in (0.0, 2.0, 1e-42):
        grads = {"w": torch.full((12, 9), value), "b": torch.full((9,), value)}
        for got in steps(lambda: remembering(make), [grads] * 3):
            assert all(torch.isfinite(x).all() for x in got.mean.values())
            assert value or not any(x.any() for x in got.mean.values())


@pytest.mark.parametrize("make", REDUCERS.values(), ids=REDUCERS)
def test_empty_buckets_empty_tensors_and_one_element(make):
    assert steps(make, [{}]) == [({}, {})]
    mean = once(make(), e=torch.zeros(0, 3))
    assert mean["e"].shape == (0, 3)
    assert once(make(), e=torch.zeros(0), s=torch.tensor(2.0))["s"].shape == ()


@pytest.mark.parametrize("make", REDUCERS.values(), ids=REDUCERS)
def test_strided_gradients_are_read_element_by_element(make):
    """A peer read a strided tensor's storage as if it were dense."""
    x = gradient(0, 0)["w"]
    strided = [{"w": x.t()}, {"w": x[:, ::2]}, {"w": x[0].expand(6, 9)}]
    for grads in strided:
        assert not grads["w"].is_contiguous()
        dense = {name: y.clone(memory_format=torch.contiguous_format) for name, y in grads.items()}
        got, right = (steps(lambda: remembering(make), [g] * 2) for g in (grads, dense))
        assert all(torch.equal(a.mean["w"], b.mean["w"]) for a, b in zip(got, right, strict=True))


@pytest.mark.parametrize(
    "make", [lambda: ErrorFeedback(OneBit()), lambda: MomentumCorrection(Mean()), PowerSGD, GradZip]
)
def test_a_tensor_that_changes_its_shape(make):
    with pytest.raises(UserError) as error:
        steps(make, [{"w": torch.ones(30, 20)}, {"w": torch.ones(31, 40)}])
    assert "w changed its shape, and its" in str(error.value) and "try: a new reducer" in str(error.value)


def changed(comm, make):
    """Rank 1 brings another shape in the second step."""
    reducer = make()
    for step in range(2):
        reducer.reduce({"w": torch.ones(40 + (step and comm.rank), 30)}, comm)


@pytest.mark.parametrize(
    ("make", "kind"),
    [(Half, "Mismatch"), (lambda: TopK(0.1), "Mismatch"), (lambda: ErrorFeedback(TopK(0.1)), "UserError")],
)
def test_a_shape_that_changes_on_one_rank_alone_ends_in_an_error_on_all(make, kind):
    with pytest.raises(RankError) as error:
        threads.run(under_contract, 2, (changed, make), 20)
    assert error.value.kind == kind and "rank 1" in str(error.value)


def other_settings(comm):
    TopK(0.1 * (comm.rank + 1)).reduce(gradient(0, 0), comm)


def other_shapes(comm):
    OneBit().reduce({"w": torch.ones(3, 2 + comm.rank)}, comm)


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (other_settings, "rank 0 has TopK 0.1, rank 1 has TopK 0.2"),
        (other_shapes, "rank 0 has w (3, 2) torch.float32, rank 1 has w (3, 3) torch.float32"),
    ],
)
def test_ranks_that_do_not_fit_together_are_told(ranks, fn, words):
    with pytest.raises(RankError) as error:
        ranks(2).run(fn)
    assert error.value.kind == "Mismatch" and words in error.value.message
