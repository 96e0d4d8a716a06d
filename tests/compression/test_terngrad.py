"""TernGrad draws without bias, with the variance of the law; one scaler for all ranks; seeds go on where they were."""

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.compression import TernGrad
from lt_core.compression.terngrad import clipped, ternary
from tests.compression.alone import once

DRAWS = 20_000


def drawn(g, scale):
    uniform = torch.rand(DRAWS, len(g), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return scale * ternary(g.expand(DRAWS, -1), torch.tensor(scale), uniform).double()


@pytest.mark.parametrize("values", [[0.5, -1.0, 0.25, 0.0], [-0.3], [2.0, 2.0, 2.0]])
def test_mean_variance_and_values(values):
    """A home-made version kept an element where the draw was above its part, and forgot signs: the mean was wrong."""
    g = torch.tensor(values, dtype=torch.float64)
    scale = float(g.abs().max())
    x = drawn(g, scale)
    assert set((x / scale).unique().tolist()) <= {-1, 0, 1}
    assert (x[:, g.abs() == scale] == g[g.abs() == scale]).all()  # the largest is always sent
    variance = scale * g.abs() - g**2
    assert ((x.mean(0) - g).abs() <= 0.02).all()
    assert ((x.mean(0) - g).abs() <= 4 * (variance / DRAWS).sqrt() + 1e-12).all()
    assert torch.allclose(x.var(0), variance, atol=0.02)


def test_noise_of_a_normal_gradient():
    np = pytest.importorskip("numpy")
    g = torch.from_numpy(np.random.RandomState(1).randn(1000))
    assert float((g.abs().max() * g.abs() - g**2).sum() / (g**2).sum()) == pytest.approx(2.19, abs=0.01)


def test_clipping_is_at_deviations_from_zero():
    x = torch.tensor([0.0] * 99 + [-100.0])
    assert clipped(x, 2.5).tolist() == [0.0] * 99 + [pytest.approx(-2.5 * 10)]
    assert torch.equal(clipped(x, None), x)


@pytest.mark.parametrize("values", [[-0.3], [2.0, 2.0, 2.0], [1e-30, 1e-30]])
def test_one_element_and_equal_ones_are_sent_as_they_are(values):
    """Clipped at deviations from their own mean, which are 0, they were sent as zeros: no such bias ever learned."""
    assert torch.equal(once(TernGrad(), x=torch.tensor(values))["x"], torch.tensor(values))


def of_each_rank(comm):
    """What the same gradient became on this rank, step after step; at half way a saved state takes over."""
    found, grads, reducer = [], {"x": torch.linspace(-1, 1, 50)}, TernGrad()
    for step in range(4):
        if step == 2:
            saved, reducer = reducer.state_dict(), TernGrad()
            reducer.load_state_dict(saved)
        found.append(reducer.reduce(grads, comm).sent["x"])
    return torch.stack(found)


def test_each_rank_errs_by_itself_also_after_a_state_was_loaded(ranks):
    drawn = torch.cat(ranks(3).run(of_each_rank))
    assert len(drawn.unique(dim=0)) == len(drawn) == 12


def scaler(comm):
    x = torch.tensor([[1.0, 0.0], [0.0, -8.0]][comm.rank])
    return TernGrad(clip=None).reduce({"x": x}, comm).sent["x"].tolist()


def test_ranks_share_the_largest_scaler(ranks):
    first, second = ranks(2).run(scaler)
    assert first[0] in (0, 8) and second == [0, -8]


def test_zeros_stay_zeros_and_draws_go_on_where_they_were():
    x = torch.linspace(-1, 1, 50)
    assert not once(TernGrad(), x=torch.zeros(3))["x"].any()
    reducer = TernGrad()
    first = once(reducer, x=x)["x"]
    state = reducer.state_dict()
    second, other = once(reducer, x=x)["x"], TernGrad()
    other.load_state_dict(state)
    assert torch.equal(once(other, x=x)["x"], second) and not torch.equal(first, second)


def test_a_clip_is_above_zero():
    with pytest.raises(UserError, match="a clip in standard deviations; got 0; expected above 0, or None"):
        TernGrad(clip=0)
