"""Two sets of tensors are compared to the bit, and what differs is named with its place and by how much."""

import math

import pytest
import torch

from lt_core.teaching.same import difference, differences, same_bits

X = torch.tensor([[1.0, 2.0], [3.0, -4.0]], dtype=torch.float64)
NAN = torch.tensor([1.0, torch.nan], dtype=torch.float64)


DTYPES = [
    torch.float64,
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int8,
    torch.bool,
    torch.cfloat,
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_same_bits_of_every_type_and_stride(dtype):
    x = torch.arange(12).view(3, 4).to(dtype)
    assert same_bits(x, x.clone()) and same_bits(x.t(), x.t().contiguous()) and same_bits(x[0, 0], x[0, 0].clone())
    y = x.clone()
    y[2, 1] = x[0, 0]
    assert not same_bits(x, y)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (X, X.float()),
        (X, X.view(4)),
        (X[:0], X[:0, :1]),
        (torch.tensor(0.0), torch.tensor(-0.0)),
        (NAN, NAN.nan_to_num()),
    ],
)
def test_not_the_same_bits(a, b):
    assert not same_bits(a, b)


def test_the_same_nan_in_the_same_place_is_equal():
    assert same_bits(NAN, NAN.clone()) and list(differences({"x": NAN}, {"x": NAN.clone()})) == []


def test_the_largest_distance_relative_to_the_largest_number():
    y = X.clone()
    y[1, 0] += 0.5
    y[0, 1] += 0.25
    found = difference("w", y, X)
    assert (found.relative, found.where, found.broken) == (0.125, "w[1, 0] is 3.5 against 3.0", False)


def test_of_nothing_but_zeros_the_distance_itself():
    assert difference("w", torch.tensor([0.0, 1e-3]), torch.zeros(2)).relative == pytest.approx(1e-3)


@pytest.mark.parametrize(
    ("a", "b", "where"),
    [
        (X.float(), X, "w is float32 (2, 2) against float64 (2, 2)"),
        (X.view(4), X, "w is float64 (4,) against float64 (2, 2)"),
        (NAN, torch.ones(2, dtype=torch.float64), "w[1] is nan against 1.0"),
        (torch.ones(2, dtype=torch.float64), NAN, "w[1] is 1.0 against nan"),
        (torch.tensor([math.inf]), torch.tensor([1.0]), "w[0] is inf against 1.0"),
        (torch.tensor([math.inf]), torch.tensor([-math.inf]), "w[0] is inf against -inf"),
        (torch.tensor(math.nan), torch.tensor(0.0), "w is nan against 0.0"),
    ],
)
def test_what_no_bound_forgives(a, b, where):
    found = difference("w", a, b)
    assert (found.where, found.broken, found.relative) == (where, True, math.inf)


def test_infinities_and_nan_in_both_leave_the_rest_to_be_compared():
    a = torch.tensor([math.inf, math.nan, 2.0], dtype=torch.float64)
    b = torch.tensor([math.inf, math.nan, 4.0], dtype=torch.float64)
    assert difference("w", a, b).relative == 0.5


def test_a_name_of_one_side_only():
    found = [d.where for d in differences({"a": X, "c": X}, {"a": X, "b": X})]
    assert found == ["b is in one of the two only", "c is in one of the two only"]


def test_complex_numbers_differ_in_either_part():
    a, b = torch.tensor([1 + 2j, 3 + 4j]), torch.tensor([1 + 2j, 3 + 5j])
    assert difference("w", a, b).where == "w[1] is (3+4j) against (3+5j)"
