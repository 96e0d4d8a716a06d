"""Half: rounded once on the rank and once a hop, ranges as IEEE says, what vanishes is what the law names."""

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.compression import ErrorFeedback, Half
from tests.compression.alone import once, steps


@pytest.mark.parametrize(("dtype", "digits"), [(torch.float16, 11), (torch.bfloat16, 8)])
def test_error_of_one_rounding(dtype, digits):
    x = torch.linspace(0.001, 1000, 1001, dtype=torch.float64)
    assert ((once(Half(dtype), x=x)["x"] - x).abs() <= 2.0**-digits * x).all()


def test_what_float16_cannot_hold():
    x = torch.tensor([1e-9, 1e6])
    assert once(Half(), x=x)["x"].tolist() == [0, float("inf")]
    assert torch.isfinite(once(Half(torch.bfloat16), x=x)["x"]).all()


def test_with_feedback_small_gradients_add_up_until_they_are_sent():
    sent = steps(lambda: ErrorFeedback(Half()), [{"x": torch.tensor([2e-8])}] * 10)
    assert sum(float(r.mean["x"]) for r in sent) == pytest.approx(2e-7, rel=0.4)


def test_what_is_too_large_is_remembered_by_nobody():
    reducer = ErrorFeedback(Half())
    small, large, again = steps(lambda: reducer, [{"x": torch.tensor([x])} for x in (2e-8, 1e6, 2e-8)])
    assert (small.mean["x"], large.mean["x"]) == (0, float("inf")) and again.mean["x"].isfinite()
    assert reducer.residual("x") + again.mean["x"] == pytest.approx(4e-8)


def test_sixteen_bits_they_must_be():
    with pytest.raises(UserError, match=r"half a float has 16 bits; got torch\.float32"):
        Half(torch.float32)
