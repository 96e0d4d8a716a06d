"""GradZip: half-steps of least squares, linear in the gradient; exact for low rank after two, never further away."""

from itertools import pairwise

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.compression import GradZip
from lt_core.compression.grad_zip import basis, half_step
from lt_core.compression.low_rank import orthonormal
from tests.compression.alone import once, steps
from tests.compression.test_power_sgd import Fresh, normal


def linear(comm):
    own = [normal(20, 30, seed=10 * comm.rank + k) for k in range(3)]
    means = [sum(normal(20, 30, seed=10 * r + k) for r in range(comm.size)) / comm.size for k in range(3)]
    many, one = GradZip(2), GradZip(2)
    pairs = [
        (many.reduce({"w": a}, comm).mean["w"].clone(), one.reduce({"w": b}, comm).mean["w"].clone())
        for a, b in zip(own, means)
    ]
    return max(float((a - b).abs().max()) for a, b in pairs)


def test_ranks_together_approximate_their_mean(ranks):
    assert max(ranks(4).run(linear)) < 1e-12


def test_low_rank_is_exact_after_both_factors():
    x = normal(30, 2) @ normal(2, 20, seed=1)
    first, second = steps(lambda: Fresh(GradZip(2)), [{"x": x}] * 2)
    assert (first.mean["x"] - x).abs().max() > 0.1
    assert (second.mean["x"] - x).abs().max() < 1e-10


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_the_objective_never_rises_on_a_fixed_matrix(ridge):
    x, left, right, seen = normal(30, 20), normal(2, 30, seed=1), normal(2, 20, seed=2), []
    for step in range(20):
        if step % 2:
            right = half_step(x.t(), left, ridge)
        else:
            left = half_step(x, right, ridge)
        seen.append(float(((x - left.t() @ right) ** 2).sum() + ridge * ((left**2).sum() + (right**2).sum())))
    assert all(after <= before * (1 + 1e-12) for before, after in pairwise(seen)) and seen[-1] < seen[0]


def test_with_an_orthonormal_factor_the_half_step_is_power_sgd_s():
    x, fixed = normal(30, 20), orthonormal(normal(2, 20, seed=1))
    assert torch.allclose(half_step(x, fixed, 0.0), fixed @ x.t(), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_result_scales_with_the_gradient(scale):
    x = normal(30, 20)
    plain, scaled = (steps(lambda: Fresh(GradZip(2)), [{"x": g}] * 2)[-1].mean["x"] for g in (x, x * scale))
    assert torch.allclose(scaled, plain * scale, rtol=1e-9, atol=0)


def test_zero_gradients_do_not_end_it():
    x, zeros = normal(30, 1) @ normal(1, 20, seed=1), torch.zeros(30, 20, dtype=torch.float64)
    got = steps(lambda: Fresh(GradZip(2)), [{"x": g} for g in (zeros, zeros, x, x, x)])
    assert not got[1].mean["x"].any() and torch.allclose(got[-1].mean["x"], x)
    assert torch.equal(basis(normal(2, 20)), normal(2, 20))


@pytest.mark.parametrize(
    ("settings", "words"), [((0,), "rank 0"), ((2, -1.0), "a ridge .*; got -1.0; expected 0 or more")]
)
def test_what_is_refused(settings, words):
    with pytest.raises(UserError, match=words):
        GradZip(*settings)
    assert once(GradZip(5), x=torch.ones(3, 3))["x"].tolist() == [[1.0] * 3] * 3
