"""What has no mean, and what is no state, is refused in words by every reducer, those with a memory too."""

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.collectives import Mean
from lt_core.compression import QSGD, Coarse, ErrorFeedback, GradZip, MomentumCorrection, PowerSGD, TopK
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


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: PowerSGD(1.5), "got rank 1.5; expected a whole number, at least 1"),
        (lambda: GradZip(2.0), "got rank 2.0; expected a whole number, at least 1"),
        (lambda: QSGD(2.5), "got 2.5 and 512; expected whole numbers, 1 to"),
        (lambda: QSGD(2, 8.0), "got 2 and 8.0; expected whole numbers, 1 to"),
        (lambda: Coarse(0.5, 2.5), "got 2.5; expected a whole number, at least 1 element each"),
    ],
)
def test_a_count_that_is_no_whole_number_is_refused_where_it_is_given(make, words):
    """The first step of a large model failed in torch's words, or a norm was cut in two and a half levels."""
    with pytest.raises(UserError) as error:
        make()
    assert words in str(error.value)


def test_a_memory_without_a_reducer_is_round_the_mean():
    """As everywhere else; it failed in the first step, for None has no reduce."""
    x = torch.tensor([1.0, 2.0])
    for memory in (ErrorFeedback, MomentumCorrection):
        assert torch.equal(once(memory(None), x=x)["x"], x)
