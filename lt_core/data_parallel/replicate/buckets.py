"""Which parameters travel together: a backward ends with the first layer, so buckets are filled from the last one on.

    registered   embed  block.0  block.1  head       A message costs its latency whatever it carries: one for each
    ready        ----------------<--------------     parameter pays it n times, one for all cannot start before the
    buckets      [   2   ]  [ 1 ]  [    0     ]      end. Bucket 0 is ready first.

A bucket has one dtype, and holds as many parameters as fit, at least one. One that fits none joins a bucket that is
less than half full: its layer's bias, which came just before it, shall not cost a message of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from torch import Tensor

from lt_core.base.errors import UserError

BUCKET_BYTES = 25 * 2**20  # DDP's own

Name = TypeVar("Name")


def in_backward_order(parameters: Mapping[str, Tensor], bucket_bytes: int = BUCKET_BYTES) -> list[list[str]]:
    """The names of each bucket, in the order in which a backward fills them. Errors: buckets smaller than a byte."""
    return _cut({name: (p.dtype, p.nbytes) for name, p in parameters.items()}, bucket_bytes)


def bucket_elements(elements: Sequence[int], itemsize: int, bucket_bytes: int = BUCKET_BYTES) -> list[int]:
    """Elements of each bucket, for parameters of one dtype that have so many `elements`, as they are registered."""
    cut = _cut({k: (None, n * itemsize) for k, n in enumerate(elements)}, bucket_bytes)
    return [sum(elements[k] for k in bucket) for bucket in cut]


def _cut(sizes: dict[Name, tuple[object, int]], bucket_bytes: int) -> list[list[Name]]:
    """sizes: (dtype, bytes) of each, as registered."""
    if bucket_bytes < 1:
        raise UserError(f"buckets of {bucket_bytes} bytes hold nothing", attempt=f"bucket_bytes={BUCKET_BYTES}")
    filling: dict[object, list[Name]] = {}
    left: dict[object, int] = {}
    closed: list[list[Name]] = []
    for name, (dtype, nbytes) in reversed(sizes.items()):
        joins = nbytes > bucket_bytes < 2 * left.get(dtype, 0)
        if dtype in filling and nbytes > left[dtype] and not joins:
            closed.append(filling.pop(dtype))
        filling.setdefault(dtype, []).append(name)
        left[dtype] = (bucket_bytes if len(filling[dtype]) == 1 else left[dtype]) - nbytes
    place = {name: k for k, name in enumerate(reversed(sizes))}
    return sorted([*closed, *filling.values()], key=lambda bucket: place[bucket[-1]])
