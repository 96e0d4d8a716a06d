"""QSGD draws without bias, its noise is the exact law and below the paper's bounds; norms of all sizes."""

from math import sqrt

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.compression import QSGD, Elias, Packed
from lt_core.compression.draws import Draws
from lt_core.compression.qsgd import quantized
from tests.compression.alone import once, steps

NOISE = {1: 24.0, 4: 5.26, 16: 0.645, 64: 0.0406}  # of |v|^2, normal v of 1000 elements


def normal(elements, seed=1):
    np = pytest.importorskip("numpy")
    return torch.from_numpy(np.random.RandomState(seed).randn(elements))


def noise(v, levels):
    """The law: sum of (norm / s)^2 f (1 - f), as a part of |v|^2."""
    f = (v.abs() / v.norm() * levels) % 1
    return float((f * (1 - f)).sum()) / levels**2


@pytest.mark.parametrize(("levels", "seen"), NOISE.items())
def test_the_law_of_the_noise_gives_the_known_numbers_and_is_below_both_bounds(levels, seen):
    v = normal(1000)
    assert noise(v, levels) == pytest.approx(seen, rel=0.05)
    assert noise(v, levels) <= min(1000 / levels**2, sqrt(1000) / levels)


@pytest.mark.parametrize("levels", [1, 4, 64])
def test_mean_noise_and_zeros_of_many_draws(levels):
    v, draws, rows = normal(100), Draws(0), 10_000
    norms, drawn = quantized(v.repeat(rows), levels, 100, draws, 0)
    got = drawn * (norms / levels)[:, None]
    f = (v.abs() / v.norm() * levels) % 1
    deviation = float(v.norm()) / levels * (f * (1 - f)).sqrt()
    assert ((got.mean(0) - v).abs() <= 4 * deviation / sqrt(rows) + 1e-12).all()
    assert float(((got - v) ** 2).sum(1).mean() / (v**2).sum()) == pytest.approx(noise(v, levels), rel=0.03)
    assert float((drawn != 0).sum(1).float().mean()) <= levels * (levels + 10)


@pytest.mark.parametrize("code", [Elias(), Packed()], ids=["elias", "packed"])
def test_many_levels_are_the_gradient(code):
    v = normal(700)
    assert torch.allclose(once(QSGD(2**20, 128, code), x=v)["x"], v, atol=1e-4)


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e30, 1e-42])
def test_norms_of_all_sizes(scale):
    x = (normal(100) * scale).float()
    got = once(QSGD(2**16, 32), x=x)["x"]
    assert torch.isfinite(got).all() and torch.allclose(got, x, rtol=1e-2, atol=scale * 1e-3)


@pytest.mark.parametrize("code", [Elias(), Packed()], ids=["elias", "packed"])
def test_a_bucket_smaller_than_a_chunk_is_a_chunk_of_its_own_size(code):
    """A bias of 20 elements travelled as 2^22, in 2 MiB, with 4 bits for each of the zeros that filled it up."""
    x, reducer = {"x": normal(20)}, QSGD(7, 2**22, code)
    quantum = quantized(x["x"], 7, 2**22, Draws(0), 0)
    assert quantum.steps.shape == (1, 20)
    assert len(reducer.encode(quantum)) == 8 + code.law_bytes(quantum.steps, 7) <= 8 + 4 * 20
    (got,) = steps(lambda: reducer, [x])
    (same,) = steps(lambda: QSGD(7, 20, code), [x])
    assert torch.equal(got.mean["x"], same.mean["x"]) and got.mean["x"].any()


@pytest.mark.parametrize(("levels", "chunk"), [(0, 512), (4, 0), (-1, 512), (2**22 + 1, 8), (7, 2**23)])
def test_levels_and_chunks_there_must_be_and_not_too_many(levels, chunk):
    """A peer's levels overflowed from 128 on; from 2^23 on Elias words are longer than what is read at once."""
    with pytest.raises(UserError, match=f"got {levels} and {chunk}; expected whole numbers, 1 to 4194304 of each"):
        QSGD(levels, chunk)
