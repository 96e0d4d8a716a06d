"""The k largest are exactly those of a stable sort, whatever the sample said; nan is the largest of all."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lt_core.compression import sparse

NAN, INF = float("nan"), float("inf")


def by_sorting(x, count):
    size = [float("inf") if v != v else abs(v) for v in x.tolist()]
    return sorted(sorted(range(len(size)), key=lambda k: -size[k])[:count])


@settings(max_examples=30)
@given(st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.0, -3.0, NAN, INF]), min_size=1, max_size=12), st.integers(1, 13))
def test_the_largest_are_those_of_a_stable_sort(values, count):
    x = torch.tensor(values)
    assert sparse.largest(x, count).tolist() == by_sorting(x, count)


@pytest.mark.parametrize("kind", ["normal", "few", "sorted", "constant", "zeros"])
@pytest.mark.parametrize("count", [1, 300, 50_000])
def test_a_large_tensor_whose_sample_may_mislead(kind, count):
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(60_000, generator=generator)
    if kind == "few":  # none of the sampled places
        x = torch.where(torch.arange(60_000) % 6 == 1, x, 0.0)
    x = {"sorted": x.sort().values, "constant": torch.full_like(x, 2.0), "zeros": torch.zeros_like(x)}.get(kind, x)
    assert sparse.largest(x, count).tolist() == by_sorting(x, count)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_pairs_come_back_from_their_bytes(dtype):
    x, indices = torch.arange(10, dtype=dtype) / 3, torch.tensor([1, 4, 9])
    code = sparse.code(x, indices)
    assert len(code) == sparse.code_bytes(3, dtype.itemsize) == 3 * (4 + dtype.itemsize)
    where, values = sparse.decoded(code, x)
    assert torch.equal(where, indices) and torch.equal(values, x[indices])
