"""The models that labs and tests train: size, shape, one seed for one model, and that they learn."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.models import chain as chains
from lt_core.models import gpt as gpts


def test_pocket_has_420480_parameters_in_100_tensors():
    parameters = list(gpts.gpt().parameters())
    assert (sum(p.numel() for p in parameters), len(parameters)) == (420_480, 100)
    assert gpts.POCKET.blocks >= 4 and gpts.POCKET.heads == 4


def test_the_chains():
    assert sum(p.numel() for p in chains.chain().parameters()) == 17_290
    assert sum((above + 1) * below for above, below in pairwise(chains.WIDE)) == 29_528_074


def test_one_seed_gives_one_model():
    for make in (gpts.gpt, chains.chain):
        same, other = make(seed=1), make(seed=2)
        pairs = [(a, b, c) for a, b, c in zip(make(seed=1).parameters(), same.parameters(), other.parameters())]
        assert all(torch.equal(a, b) for a, b, _ in pairs)
        assert any(not torch.equal(a, c) for a, _, c in pairs)


def test_no_place_sees_what_follows_it():
    model, generator = gpts.gpt(dtype=torch.float64), torch.Generator().manual_seed(0)
    tokens = torch.randint(256, (2, 64), generator=generator)
    other = tokens.clone()
    other[:, 40:] = (other[:, 40:] + 1) % 256
    first, second = model(tokens), model(other)
    assert first.shape == (2, 64, 256)
    assert torch.equal(first[:, :40], second[:, :40]) and not torch.equal(first[:, 40], second[:, 40])


def test_it_starts_at_the_loss_of_a_guess_and_learns():
    small = replace(gpts.POCKET, blocks=2)
    model, tokens = gpts.gpt(small), torch.arange(65).repeat(4, 1)
    losses = []
    for _ in range(20):
        model.zero_grad()
        loss = gpts.loss(model(tokens[:, :-1]), tokens[:, 1:])
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.5 * p.grad
        losses.append(loss.item())
    assert abs(losses[0] - 5.545) < 0.1 and losses[-1] < losses[0] - 1  # ln 256


def test_dropout_acts_in_training_alone():
    model = gpts.gpt(replace(gpts.POCKET, blocks=1, dropout=0.5))
    tokens = torch.zeros(1, 8, dtype=torch.int64)
    assert not torch.equal(model(tokens), model(tokens))
    model.eval()
    assert torch.equal(model(tokens), model(tokens))


def test_what_makes_no_model():
    with pytest.raises(UserError, match="3 heads cannot share 64 features; expected a multiple"):
        replace(gpts.POCKET, heads=3)
    with pytest.raises(UserError, match="0 heads cannot share 64 features; expected a multiple"):
        replace(gpts.POCKET, heads=0)
    for token in (256, -1):
        with pytest.raises(UserError, match=f"there is no such token; got {token}; expected 0 to 255"):
            gpts.gpt()(torch.tensor([[0, token]]))
    with pytest.raises(UserError, match="65 tokens are too many; expected at most 64"):
        gpts.gpt()(torch.zeros(1, 65, dtype=torch.int64))
    with pytest.raises(UserError, match=r"a chain joins widths; got \[3\]; expected at least two of them"):
        chains.chain([3])
