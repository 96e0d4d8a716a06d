"""1-bit SGD keeps the sum of each sign class of each column; classes may be empty."""

import pytest
import torch

from lt_core.compression import ErrorFeedback, OneBit
from lt_core.compression.one_bit import columns, decode, encode
from tests.compression.alone import once, steps


def test_the_drawing():
    x = torch.tensor([3.0, 1, -2, 4, -6], dtype=torch.float64)
    assert once(OneBit(), x=x)["x"].tolist() == pytest.approx([8 / 3, 8 / 3, -4, 8 / 3, -4])


def test_sums_of_each_sign_class_of_each_column():
    x = torch.randn(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    got = decode(encode({"x": x}), {"x": x}).view(7, 5)
    for part in (torch.clamp_min, torch.clamp_max):
        assert torch.allclose(part(got, 0).sum(0), part(x, 0).sum(0), rtol=1e-12, atol=0)
    for column, decoded in zip(x.t(), got.t()):
        classes = [column[column >= 0], column[column < 0]]
        within = sum(float(((part - part.mean()) ** 2).sum()) for part in classes if len(part))
        assert float(((column - decoded) ** 2).sum()) == pytest.approx(within)  # the variance inside the classes


def test_contraction_is_that_of_a_sign_times_the_mean_size():
    x = torch.randn(200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    kept = float(x.abs().sum() ** 2 / (len(x) * (x**2).sum()))
    assert float(((x - once(OneBit(), x=x)["x"]) ** 2).sum() / (x**2).sum()) <= 1 - kept < 0.5


@pytest.mark.parametrize("values", [[1.0, 2.0], [-1.0, -2.0], [0.0, 0.0]])
def test_an_empty_class_has_mean_zero(values):
    assert once(OneBit(), x=torch.tensor(values))["x"].tolist() == [sum(values) / 2] * 2


def test_what_a_column_is():
    assert [columns(s) for s in [(), (3,), (3, 4), (2, 3, 3, 3), (0, 3)]] == [1, 1, 4, 27, 3]


def test_a_sign_times_the_mean_size_is_the_same_without_a_negative_part():
    """Constant gradient (3, 1): 10 steps send (20, 20) with or without a memory, as one mean cannot tell them apart."""
    x = {"x": torch.tensor([3.0, 1.0])}
    plain = sum(r.mean["x"] for r in steps(OneBit, [x] * 10))
    kept = sum(r.mean["x"] for r in steps(lambda: ErrorFeedback(OneBit()), [x] * 10))
    assert plain.tolist() == [20, 20]
    assert kept.tolist() == pytest.approx([30, 10], abs=4)
