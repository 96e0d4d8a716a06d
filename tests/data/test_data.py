"""What is trained on is the same everywhere, a user's own where he says so, and each sample goes to one rank."""

import numpy
import pytest
import torch
from torch.utils.data import DataLoader

from lt_core.base.errors import UserError
from lt_core.data import digits, sharding, text


def test_the_standard_library_s_text():
    found = text.text()
    data = bytes(found.data.tolist())
    assert 400_000 < len(data) < 900_000 and data.isascii() and b" \n" not in data and b"\r" not in data
    assert b"class ArgumentParser" in data and len(found.digest) == 64
    assert found.pinned is (found.digest == text.PINNED)
    assert all(torch.equal(a, b) for a, b in zip(text.text()[:1], found[:1]))


def test_one_normal_form():
    assert text.normal("a \r\n\tb\u00e4\n".encode()) == b"a\n    b?\n"
    assert text.normal(b"\xff") == b"?\n"


def test_a_folder_of_one_s_own(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "b.txt").write_text("two")
    (tmp_path / "deep" / "a.md").write_text("three")
    (tmp_path / "a.txt").write_text("one")
    (tmp_path / "a.bin").write_text("none")
    found = text.text(tmp_path)
    assert bytes(found.data.tolist()) == b"one\n\ntwo\n\nthree\n" and not found.pinned
    with pytest.raises(UserError, match=r"there is no text in .*; expected files ending in .tex"):
        text.text(tmp_path, [".tex"])
    assert bytes(text.text(tmp_path, (f".{end}" for end in ("md", "bin"))).data.tolist()) == b"none\n\nthree\n"
    with pytest.raises(UserError, match=r"one of several; got '.md'; expected suffixes; try: \('.md',\)"):
        text.text(tmp_path, ".md")


def test_windows_and_what_follows_them():
    x, y = text.windows(torch.arange(100, dtype=torch.uint8), 8, 50, torch.Generator().manual_seed(0))
    assert x.shape == y.shape == (50, 8) and x.dtype == torch.int64
    assert torch.equal(y, x + 1) and y.max() <= 99 and len(x[:, 0].unique()) > 20
    x, _ = text.windows(torch.arange(9, dtype=torch.uint8), 8, 5, torch.Generator())
    assert x[:, 0].tolist() == [0] * 5
    with pytest.raises(UserError, match="8 bytes are too few; expected more than the context of 8"):
        text.windows(torch.arange(8, dtype=torch.uint8), 8, 1, torch.Generator())
    assert [len(part) for part in text.held_out(torch.arange(100))] == [90, 10]


def test_digits():
    train, held = digits.digits()
    assert train.x.shape == (1536, 64) and held.x.shape == (261, 64) and train.y.shape == (1536,)
    assert (train.x.min(), train.x.max()) == (0, 1) and set(held.y.tolist()) == set(range(10))
    again, other = digits.digits()[0], digits.digits(seed=1)[0]
    assert torch.equal(again.x, train.x) and not torch.equal(other.y, train.y)


def test_digits_of_one_s_own(tmp_path):
    with pytest.raises(UserError, match="holds no images"):
        digits.digits(tmp_path)
    numpy.save(tmp_path / "x.npy", numpy.arange(24).reshape(4, 2, 3))
    numpy.save(tmp_path / "y.npy", numpy.array([0, 1, 2, 3]))
    train, held = digits.digits(tmp_path, train=3)
    assert train.x.shape == (3, 6) and held.x.shape == (1, 6) and torch.cat([train.x, held.x]).max() == 1
    with pytest.raises(UserError, match="5 of 4 images cannot be learned from; expected 1 to 4"):
        digits.digits(tmp_path, train=5)
    numpy.save(tmp_path / "y.npy", numpy.array([0, 1]))
    with pytest.raises(UserError, match="holds 4 images and 2 names; expected as many of both"):
        digits.digits(tmp_path)


def shares(comm, samples):
    shard = sharding.Shard(samples, comm)
    mine = [int(i) for batch in DataLoader(range(samples), batch_size=2, sampler=shard) for i in batch]
    right = sum(i != 0 for i in mine)
    return mine, len(shard), sharding.sums(comm, right=right, seen=len(mine))


@pytest.mark.parametrize(("size", "samples"), [(1, 5), (2, 5), (4, 5), (7, 3), (2, 0)])
def test_metrics_do_not_change_with_the_number_of_ranks(ranks, size, samples):
    """A sampler that filled ranks up gave 6 of 8 in place of 4 of 5; very small sets failed altogether."""
    everyone = ranks(size).run(shares, samples)
    assert sorted(i for mine, _, _ in everyone for i in mine) == list(range(samples))
    for mine, length, metrics in everyone:
        assert length == len(mine) and metrics == {"right": max(samples - 1, 0), "seen": samples}


def orders(comm):
    shard = sharding.Shard(10, comm, shuffle=True, seed=3)
    first, again = list(shard), list(shard)
    shard.set_epoch(1)
    return first, again, list(shard)


def test_each_epoch_has_its_own_order(ranks):
    everyone = ranks(2).run(orders)
    for epoch in range(3):
        assert sorted(i for found in everyone for i in found[epoch]) == list(range(10))
    assert everyone[0][0] == everyone[0][1] != everyone[0][2]


def test_fewer_than_no_samples():
    with pytest.raises(UserError, match="there cannot be so many samples; got -1; expected 0 or more"):
        sharding.Shard(-1, None)
