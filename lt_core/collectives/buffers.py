"""The memory that collectives work in: a dense copy, an alias that may be written, a buffer that is used again."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def copied(x: Tensor) -> Tensor:
    """The elements of x (any shape, any strides) in a dense buffer of their own: (n,)."""
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

    def pieces(self, like: Tensor, lengths: Sequence[int]) -> Sequence[Tensor]:
        """A buffer of each length, of the dtype and on the device of `like`; they last until the next call."""
        kind, total = (like.dtype, like.device), sum(lengths)
        if kind not in self._buffers or total > self._buffers[kind].numel():
            with torch.inference_mode(False):  # units differ by one element: room for the longest ones at once
                self._buffers[kind] = like.new_empty(total + len(lengths))
        return self._buffers[kind][:total].split_with_sizes(list(lengths))
