"""The badge says which equality held, with the evidence; what is not the same fails the cell; nothing is called same
for another type, shape or NaN."""

import math

import pytest
import torch
from torch import nn

from lt_core.base import UserError
from lt_core.teaching import NotTheSame, Purpose, verify
from lt_core.teaching.verify import rounded_up

STALE = Purpose("stale by 3 updates", "applied = produced", met=True)


@pytest.fixture
def x():
    return torch.arange(1.0, 7.0, dtype=torch.float64).view(2, 3)


def nudged(x, by):
    y = x.clone()
    y[1, 2] += by
    return y


def test_the_same_bits(x, capsys):
    badge = verify(x, x.clone(), after="3 steps")
    assert str(badge) == "≡ SAME BITS: 6 numbers after 3 steps"
    assert capsys.readouterr().out == f"{badge}\n"


def test_modules_are_compared_by_parameters_and_buffers():
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    other.load_state_dict(model.state_dict())
    assert str(verify(model, other)) == "≡ SAME BITS: 8 parameters"
    normed = nn.BatchNorm1d(4)
    assert str(verify(normed, normed)) == "≡ SAME BITS: 8 parameters and 9 numbers in buffers"


def test_ranks_are_compared_with_plain_or_with_each_other(x):
    assert str(verify([x, x.clone(), x.clone(), x.clone()], x)) == "≡ SAME BITS: 6 numbers, 4 ranks"
    assert str(verify([{"w": x, "b": x}, {"w": x, "b": x}])) == "≡ SAME BITS: 12 numbers in 2 tensors, 2 ranks"
    assert str(verify([x, 2 * x], [x.clone(), 2 * x])) == "≡ SAME BITS: 6 numbers, 2 ranks"


def test_the_same_within_what_rounding_does(x):
    badge = verify(nudged(x, 2.0**-50), x, because="sums in another order")
    assert str(badge) == "≈ SAME within 2e-16 (float64; sums in another order): 6 numbers"
    assert badge.relative == 2.0**-50 / 6


@pytest.mark.parametrize(
    ("dtype", "by", "same"),
    [
        (torch.float64, 5e-12, True),
        (torch.float64, 1e-10, False),
        (torch.float32, 1e-5, True),
        (torch.float32, 1e-3, False),
        (torch.bfloat16, 0.05, False),
        (torch.int64, 1, False),
    ],
)
def test_how_much_is_the_same_goes_by_the_type(x, dtype, by, same):
    a, b = nudged(x, 0).to(dtype), x.to(dtype)
    a[1, 2] += by
    if same:
        assert verify(a, b).sign == "≈"
    else:
        with pytest.raises(NotTheSame):
            verify(a, b)


def test_another_bound_can_be_named(x):
    assert verify(nudged(x, 0.06), x, within=0.01).sign == "≈"
    with pytest.raises(NotTheSame, match=r"1\.0e-02 apart; 1e-03 is allowed"):
        verify(nudged(x, 0.06), x, within=1e-3)
    with pytest.raises(NotTheSame, match="only the same bits are allowed"):
        verify(nudged(x, 1), x, within=0.0)


def test_what_is_not_the_same_fails_the_cell_and_says_where(x, capsys):
    with pytest.raises(NotTheSame) as raised:
        verify([{"w": x}, {"w": x}, {"w": nudged(x, 0.5)}], {"w": x})
    text = "✘ NOT THE SAME: rank 2: w[1, 2] is 6.5 against 6.0, 8.3e-02 apart; 1e-12 is allowed; 6 numbers, 3 ranks"
    assert str(raised.value) == text and capsys.readouterr().out == f"{text}\n"
    assert raised.value._render_traceback_() == [f"NotTheSame: {text}"]


@pytest.mark.parametrize(
    "other",
    [lambda x: x.float(), lambda x: x.view(3, 2), lambda x: nudged(x, math.nan), lambda x: nudged(x, math.inf)],
)
@pytest.mark.parametrize("more", [{}, {"within": 1e9}, {"on_purpose": STALE}])
def test_another_type_shape_or_nan_is_never_the_same(x, other, more):
    with pytest.raises(NotTheSame):
        verify(other(x), x, **more)
    with pytest.raises(NotTheSame):
        verify(x, other(x), **more)


def test_a_tensor_that_is_missing_is_not_the_same(x):
    with pytest.raises(NotTheSame, match="b is in one of the two only"):
        verify({"w": x}, {"w": x, "b": x})


def test_the_worst_is_named_first(x):
    with pytest.raises(NotTheSame, match="rank 1: b is float32"):
        verify([{"w": x, "b": x}, {"w": nudged(x, 1), "b": x.float()}])


def test_different_on_purpose_names_the_law_that_holds(x):
    badge = verify(nudged(x, 1), x, on_purpose=STALE)
    assert (
        str(badge)
        == "≠ DIFFERENT ON PURPOSE: stale by 3 updates; the law that does hold: applied = produced; 6 numbers"
    )


def test_a_purpose_whose_law_does_not_hold_is_none(x):
    with pytest.raises(NotTheSame, match="stale by 3 updates; and the law does not hold: applied = produced"):
        verify(nudged(x, 1), x, on_purpose=STALE._replace(met=False))


def test_the_same_is_called_the_same_even_where_a_difference_was_expected(x):
    assert str(verify(x, x.clone(), on_purpose=STALE)) == "≡ SAME BITS: 6 numbers, though a difference was expected"


@pytest.mark.parametrize(
    ("ours", "plain", "says"),
    [
        (torch.ones(2), None, "nothing to compare it with"),
        ([torch.ones(2)], None, "nothing to compare; got 1 against 1 ranks"),
        ([], torch.ones(2), "nothing to compare; got 0 against 0 ranks"),
        ([torch.ones(2)] * 2, [torch.ones(2)] * 3, "nothing to compare; got 2 against 3 ranks"),
        ({}, {}, "nothing to compare; got no tensor on either side"),
        (3.0, 3.0, "no tensors to compare; got float 3.0"),
        ({"w": 1.0}, {"w": 1.0}, "no tensors to compare; got dict"),
    ],
)
def test_nothing_is_never_the_same_as_nothing(ours, plain, says):
    with pytest.raises(UserError, match=says):
        verify(ours, plain)


def test_a_notebook_gets_the_chip_and_the_record_is_not_shown_twice(x, displayed):
    badge = verify(x, x.clone())
    assert "≡ SAME BITS</span> 6 numbers" in displayed[0]["data"]["text/html"]
    badge._ipython_display_()
    assert len(displayed) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.1e-16, "3e-16"), (3e-16, "3e-16"), (9.5e-8, "1e-7"), (0.06, "6e-2"), (0, "0"), (1.5, "2")],
)
def test_within_is_rounded_up(value, text):
    assert rounded_up(value) == text
