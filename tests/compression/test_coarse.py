"""Coarse: all ranks choose the same chunks by their common norms; all of them is the dense mean, bit for bit."""

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.collectives import Mean, ring
from lt_core.compression import Coarse, MomentumCorrection


def gradient(rank, step, elements=10):
    return {"x": torch.randn(elements, generator=torch.Generator().manual_seed(10 * rank + step), dtype=torch.float64)}


def drawing(comm):
    x = torch.tensor([[5.0, 1, 9, 2], [4.0, 1, 1, 8]][comm.rank]).repeat_interleave(3)[:-1]  # the last chunk is short
    mean, sent = Coarse(0.5, 3).reduce({"x": x * torch.tensor([1, -1] * 6)[:11]}, comm)
    return mean["x"].tolist(), sent["x"].tolist()


def test_the_drawing_chooses_on_common_norms(ranks):
    for rank, (mean, sent) in enumerate(ranks(2).run(drawing)):
        chosen = [k // 3 for k, x in enumerate(mean) if x]
        assert sorted(set(chosen)) == [0, 2]  # 27, 6, 30, 20: the last chunk has two elements
        assert [bool(x) for x in sent] == [bool(x) for x in mean] and rank in (0, 1)


def tied(comm):
    """Six chunks of one common norm, which each rank alone would put in another order."""
    own = torch.arange(1.0, 7.0)
    x = (own if comm.rank == 0 else own.flip(0)).repeat_interleave(2)
    sent = Coarse(0.5, 2).reduce({"x": x}, comm).sent["x"]
    return sent.nonzero().view(-1).tolist()


def test_ties_are_broken_alike_on_all_ranks(ranks):
    assert ranks(2).run(tied) == [[0, 1, 2, 3, 4, 5]] * 2


def everything(comm):
    grads = gradient(comm.rank, 0)
    dense = Mean(ring.schedule).reduce(grads, comm).mean["x"]
    return torch.equal(Coarse(1, 3, ring.schedule).reduce(grads, comm).mean["x"], dense)


def test_all_chunks_are_the_dense_mean_bit_for_bit(ranks):
    assert ranks(3).run(everything) == [True] * 3


def waiting(comm):
    """Velocities by hand, chunk by chunk, beside GradientFlow's."""
    reducer, u, v = MomentumCorrection(Coarse(0.5, 5), 0.9), torch.zeros(10).double(), torch.zeros(10).double()
    for step in range(6):
        x = gradient(comm.rank, step)["x"]
        u = 0.9 * u + x
        v = v + u
        mean, sent = reducer.reduce({"x": x}, comm)
        chosen = sent["x"] != 0
        assert int(chosen.sum()) == 5 and torch.equal(sent["x"][chosen], v[chosen])
        u, v = u * ~chosen, v * ~chosen
    return mean["x"]


def test_chunks_that_wait_gather_momentum(ranks):
    first, second = ranks(2).run(waiting)
    assert torch.equal(first, second)


def test_a_chunk_has_elements():
    words = "a bucket is cut in chunks; got 0; expected a whole number, at least 1 element each"
    with pytest.raises(UserError, match=words):
        Coarse(0.1, 0)
