"""What crosses between processes arrives equal, and what cannot cross is named with its type."""

import threading

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.comm.parcel import packed, unpacked


def test_functions_classes_and_tensors_cross():
    class Local:
        def __init__(self, x):
            self.x = x

    base = torch.arange(4.0)
    double, local, view = unpacked(packed("it", (lambda y: 2 * y, Local(base), base[1:])))
    assert double(3) == 6 and isinstance(local, Local)
    assert torch.equal(local.x, base) and torch.equal(view, base[1:])
    view.zero_()
    assert local.x[1] == 0  # what shared memory still does


@pytest.mark.parametrize(
    ("value", "kind"),
    [(threading.Lock(), "_thread.lock"), ((i for i in ()), "generator"), ({1: threading.Lock()}, "dict")],
)
def test_what_cannot_cross_is_named(value, kind):
    with pytest.raises(UserError) as caught:
        packed("the result", value)
    assert str(caught.value).startswith("the result cannot be sent to another process (cannot pickle")
    assert str(caught.value).endswith(f"got a {kind}; expected something that can be pickled")


class Fragile:
    """Can be taken apart, and not be put together again."""

    def __setstate__(self, state):
        raise KeyError("a part is missing")


def test_what_cannot_be_put_together_is_named():
    """Its own error came bare, and nobody knew which value of which rank it was."""
    fragile = Fragile()
    fragile.part = 1
    with pytest.raises(UserError) as caught:
        unpacked(packed("the result", fragile), "rank 1's result")
    assert str(caught.value) == (
        "rank 1's result was sent, and cannot be put together in this process; got KeyError: 'a part is missing'; "
        "try: plain values and tensors, or a class that both can import"
    )
    assert isinstance(caught.value.__cause__, KeyError)
