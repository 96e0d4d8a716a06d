"""PowerSGD approximates the mean, not each rank's matrix; low rank is found exactly, otherwise nearly the best."""

from itertools import pairwise

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.collectives import Reduced
from lt_core.compression import ErrorFeedback, PowerSGD
from lt_core.compression.low_rank import orthonormal, thin
from lt_core.compression.power_sgd import elements
from tests.compression.alone import once, steps

POCKET = [(256, 64), (64, 64), *[s for _ in range(8) for s in (
    (64,), (64,), (192, 64), (192,), (64, 64), (64,), (64,), (64,), (256, 64), (256,), (64, 256), (64,)
)], (64,), (64,)]  # fmt: skip


def normal(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_elements_of_both_messages_for_a_small_gpt():
    assert sum(torch.Size(s).numel() for s in POCKET) == 420_480
    assert sum(elements(POCKET, 2)) * 4 == 96_256


def linear(comm):
    """Two steps of ranks that differ, and of ranks that all have the mean."""
    own = [normal(20, 30, seed=10 * comm.rank + k) for k in range(2)]
    means = [sum(normal(20, 30, seed=10 * r + k) for r in range(comm.size)) / comm.size for k in range(2)]
    many, one = PowerSGD(2), PowerSGD(2)
    return [[by.reduce({"w": x}, comm).mean["w"].clone() for x in xs] for by, xs in ((many, own), (one, means))]


def test_ranks_together_approximate_their_mean(ranks):
    for ours, of_the_mean in ranks(4).run(linear):
        assert all((a - b).abs().max() < 1e-13 for a, b in zip(ours, of_the_mean))


@pytest.mark.parametrize("rank", [2, 3])
def test_a_matrix_of_low_rank_is_found_exactly(rank):
    x = normal(30, 2) @ normal(2, 20, seed=1)
    assert (once(PowerSGD(rank), x=x)["x"] - x).abs().max() < 1e-10 * x.abs().max()


def test_a_fixed_matrix_comes_near_the_best_of_its_rank():
    x = normal(30, 20)
    best = float(torch.linalg.svdvals(x)[2:].square().sum().sqrt())
    got = steps(lambda: Fresh(PowerSGD(2)), [{"x": x}] * 60)
    errors = [float((x - r.mean["x"]).norm()) / best for r in got]
    assert 1 <= errors[-1] < 1.002 < errors[0] < 1.2
    assert all(after <= before * (1 + 1e-9) for before, after in pairwise(errors))


def test_a_fixed_matrix_is_power_iteration_at_its_rate():
    """Against an iteration of its own, without a reducer: after 1, 10 and 50 steps; what is left falls by a law."""
    x, reducer = normal(30, 20), PowerSGD(2)
    start = normal(20, 2, seed=5)
    reducer.load_state_dict({"right": {"x": start.t().contiguous()}})
    got = steps(lambda: Fresh(reducer), [{"x": x}] * 50)
    sizes = torch.linalg.svdvals(x)
    best, errors, right = float(sizes[2:].norm()), [], start
    for k in range(50):
        left = torch.linalg.qr(x @ right).Q
        right = x.t() @ left
        errors.append(float((x - left @ right.t()).norm()) / best)
        if k + 1 in (1, 10, 50):
            assert float((x - got[k].mean["x"]).norm()) / best == pytest.approx(errors[k], rel=1e-12)
    assert errors[0] > 1.01 and errors[9] < 1.01 and errors[49] < 1.001
    left_over = [e**2 - 1 for e in errors]
    rate = float(sizes[2] / sizes[1]) ** 4  # tangents fall by the square in a step, and count squared
    assert left_over[49] / left_over[39] == pytest.approx(rate**10, rel=0.05)


class Fresh:
    """A reducer whose mean is a copy: the memory of a low-rank one is used again in the next step."""

    def __init__(self, inner):
        self.inner = inner

    def reduce(self, grads, comm):
        mean, sent = self.inner.reduce(grads, comm)
        return Reduced({n: x.clone() for n, x in mean.items()}, sent)


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e12])
def test_the_result_scales_with_the_gradient(scale):
    """A constant that a peer added against division by zero swallowed small gradients."""
    x = normal(30, 20)
    assert torch.allclose(once(PowerSGD(2), x=x * scale)["x"], once(PowerSGD(2), x=x)["x"] * scale, rtol=1e-9, atol=0)


@pytest.mark.parametrize("rank", [1, 2])
def test_zeros_stay_zeros_and_do_not_spoil_what_follows(rank):
    """A peer's orthogonalisation divided by the length of a column, which is 0 where nobody used a layer: nan."""
    x, zeros = normal(30, 1) @ normal(1, 20, seed=1), torch.zeros(30, 20, dtype=torch.float64)
    got = steps(lambda: Fresh(PowerSGD(rank)), [{"x": zeros}, {"x": x}, {"x": x}])
    assert not got[0].mean["x"].any() and torch.allclose(got[2].mean["x"], x)


@pytest.mark.parametrize("kind", ["zeros", "equal rows", "tiny", "one column zero"])
def test_rows_are_orthonormal_whatever_came(kind):
    """One pass of Gram-Schmidt leaves dependent columns at an inner product of 0.4."""
    x = normal(3, 20)
    x = {"zeros": x * 0, "equal rows": x[:1].repeat(3, 1), "tiny": x * 1e-150}.get(kind, x)
    x[-1] *= kind != "one column zero"
    assert torch.allclose(orthonormal(x) @ orthonormal(x).t(), torch.eye(3, dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize("rank", [1, 3, 4, 7])
def test_small_matrices_vectors_and_convolutions(rank):
    assert [thin(s, rank, 2.0) for s in [(3, 4), (4,), (), (5, 0)]] == [False] * 4
    grads = {"m": normal(3, 4), "b": normal(4), "c": normal(2, 3, 3, 3)}
    mean = once(PowerSGD(rank), **grads)
    assert all(torch.allclose(mean[n], x, rtol=1e-6) for n, x in grads.items())  # nothing to save: sent as they are
    if rank < 3:
        grads = {"m": normal(3, 1) @ normal(1, 4), "b": normal(4), "c": (normal(2, 1) @ normal(1, 27)).view(2, 3, 3, 3)}
        assert [thin(x.shape, rank, 1) for x in grads.values()] == [True, False, True]
        mean = once(PowerSGD(rank, least_saving=1), **grads)
        assert all(torch.allclose(mean[n], x, rtol=1e-9) for n, x in grads.items())


def test_a_convolution_is_a_matrix_of_its_first_dimension():
    x = (normal(16, 1) @ normal(1, 72, seed=1)).view(16, 8, 3, 3)
    assert thin(x.shape, 1, 2.0) and torch.allclose(once(PowerSGD(1), x=x)["x"], x)


def test_sixteen_bits_come_back_in_sixteen():
    x = (normal(30, 1) @ normal(1, 20, seed=1)).bfloat16()
    got = once(ErrorFeedback(PowerSGD(1)), x=x)["x"]
    assert got.dtype == torch.bfloat16 and torch.allclose(got.float(), x.float(), rtol=0.02, atol=0.02)


def test_rank_0_is_refused():
    words = "a matrix of low rank has columns; got rank 0; expected a whole number, at least 1; try: 2 where unsure"
    with pytest.raises(UserError, match=words):
        PowerSGD(0)
