"""What has no mean, and what is no state, is refused in words by every reducer, those with a memory too."""

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.collectives import Mean
from lt_core.compression import ErrorFeedback, TopK
from tests.compression.alone import once, steps
from tests.compression.test_bad_input import REDUCERS

MAKERS = {"mean": Mean, **REDUCERS, "memory": lambda: ErrorFeedback(TopK(0.2))}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_has_no_mean_is_refused_before_a_memory_makes_a_fraction_of_it(make):
    """A memory made a float of an integer: its mean was cut off, and that was remembered nowhere."""
    for x, words in (
        (torch.tensor([1, 2]), "a mean needs fractions; got x (2,) torch.int64; expected a floating dtype"),
        (torch.ones(2, dtype=torch.complex64), "a mean needs fractions; got x (2,) torch.complex64"),
        (torch.ones(2).to(torch.float8_e5m2), "a mean needs fractions; got x (2,) torch.float8_e5m2"),
        (torch.eye(2).to_sparse(), "the mean of x takes ordinary tensors; got torch.sparse_coo"),
        (
            torch.ones(2, device="meta"),
            "the mean of x: the tensor is elsewhere; got meta; expected cpu; try: x.to('cpu')",
        ),
        (None, "the mean of x takes tensors; got NoneType"),
    ):
        with pytest.raises(UserError) as error:
            once(make(), x=x)
        assert words in str(error.value)
    with pytest.raises(UserError, match="a bucket is gradients by name; got list; expected a dict"):
        steps(make, [[torch.ones(2)]])


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_state_that_is_none_is_refused(make):
    written = [name for name in make().state_dict() if name != "inner"]
    for state in (None, 3, {1: 2}, *({**make().state_dict(), name: {"w": "x"}} for name in written)):
        with pytest.raises(UserError, match=r"a mean remembers nothing|^this|did not write"):
            make().load_state_dict(state)
