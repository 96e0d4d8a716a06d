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
