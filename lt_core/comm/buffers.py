"""Tensors that a communicator can work on where they lie: allocated once, for what is sent or summed again and again.

flat = allocate(comm, elements)     a gradient bucket, say, whose views are the parameters' `.grad`
comm.all_reduce(flat)               over shared memory no rank copies it first; elsewhere it is a plain tensor
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from lt_core.base.errors import UserError
from lt_core.comm.comm import Comm


@runtime_checkable
class Allocator(Protocol):
    """A communicator that has a place for such tensors, or one around it."""

    def allocate(self, elements: int, dtype: torch.dtype) -> Tensor:
        """Zeros in such a place."""
        ...

    def free(self, x: Tensor) -> None:
        """Give the place back."""
        ...


def allocate(comm: Comm, elements: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Zeros (elements,), where the verbs of `comm` work in place if it has such a place; a plain tensor if not.

    Every rank calls it, in one order and with equal arguments, as it does a collective. Errors: `UserError`.

    >>> from lt_core.comm import launch
    >>> launch(lambda comm: allocate(comm, 3).tolist(), 1, backend="threads")
    [[0.0, 0.0, 0.0]]
    """
    if not isinstance(elements, int) or elements < 0:
        raise UserError("a buffer has elements", elements, "0 or more")
    if not isinstance(dtype, torch.dtype):
        raise UserError("the elements of a buffer have a dtype", repr(dtype), "a torch.dtype", "torch.float32")
    if isinstance(comm, Allocator):
        return comm.allocate(elements, dtype)
    return torch.zeros(elements, dtype=dtype, device=comm.device)


def free(comm: Comm, x: Tensor) -> None:
    """Give back what `allocate` gave, once no verb uses it any more; every rank calls it. `x` stays a plain tensor."""
    if isinstance(comm, Allocator):
        comm.free(x)
