"""The memory that collectives work in: a dense copy, an alias that may be written, a buffer that is used again."""

from __future__ import annotations

import torch
from torch import Tensor

from lt_core.comm.checks import plain


def copied(x: Tensor) -> Tensor:
    """The elements of x (any shape, any strides) in a dense buffer of their own: (n,). Errors: no such tensor."""
    plain("a collective", x)
    flat = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    return flat.copy_(x.detach()).view(-1)


def ordinary(x: Tensor) -> Tensor:
    """The same storage as a tensor that any thread may write: one made under `torch.inference_mode` is not."""
    if not x.is_inference():
        return x
    with torch.inference_mode(False):
        alias = torch.empty(0, dtype=x.dtype, device=x.device)
        return alias.set_(x.untyped_storage(), x.storage_offset(), x.shape, x.stride())


class Scratch:
    """Memory to receive into: it grows to what a round needs, and the next round uses it again."""

    def __init__(self) -> None:
        self._buffers: dict[tuple[torch.dtype, torch.device], Tensor] = {}
        self._used = 0

    def clear(self) -> None:
        """Nobody reads the pieces any more."""
        self._used = 0

    def piece(self, like: Tensor) -> Tensor:
        """A buffer of as many elements as `like`, of its dtype and on its device, until `clear`."""
        kind, start, self._used = (like.dtype, like.device), self._used, self._used + like.numel()
        if kind not in self._buffers or self._used > self._buffers[kind].numel():
            with torch.inference_mode(False):  # one more: units differ by one element
                self._buffers[kind] = like.new_empty(self._used + 1)
        return self._buffers[kind][start : self._used]
