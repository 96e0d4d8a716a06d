"""Copies that go round the caches, for what this core writes and another one reads later.

    copy_     reads x, reads out (a store fetches the line that it changes), writes out
    streamed  reads x,                                                       writes out     and no cache is emptied

torch has no such copy, but the MKL that it carries has: omatcopy, which multiplies a matrix by a number, streams where
that is 1. Where torch was built without it, `copy_` does it.

Source: Intel, oneMKL reference, mkl_?omatcopy; Software Developer's Manual 1, 10.4.6.2 (streaming stores).
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

LEAST_BYTES = 128 << 10  # of less MKL streams none
LARGE_BYTES = 4 << 20  # a smaller tensor is still in some cache when it is read
Copier = Callable[[Tensor, Tensor], object]  # out, x
Kernel = Callable[[bytes, bytes, int, int, float, int, int, int, int], None]

_LOCK = threading.Lock()


def copier(nbytes: int) -> Copier:
    """What copies parts of a tensor of so many bytes best."""
    return copy if nbytes >= LARGE_BYTES else Tensor.copy_


def copy(out: Tensor, x: Tensor) -> None:
    """`out` becomes `x`, of the same shape, to the bit; the two lie apart."""
    kernel = _kernels().get(x.dtype) if _streams(out, x) else None
    if kernel is None:
        out.copy_(x)
        return
    n = x.numel()
    kernel(b"R", b"N", 1, n, 1.0, x.data_ptr(), n, out.data_ptr(), n)
    with _LOCK:  # an atomic instruction: without one what is written next could be seen before this is
        pass


def _streams(out: Tensor, x: Tensor) -> bool:
    """Whether the bytes of the one are to become those of the other, as they lie.

    Zeros may have none: `torch.sgn` has such a gradient.
    """
    alike = out.dtype == x.dtype and out.shape == x.shape and out.is_neg() == x.is_neg()
    dense = out.is_contiguous() and x.is_contiguous() and x.nbytes >= LEAST_BYTES
    return alike and dense and not x._is_zerotensor() and out.device.type == x.device.type == "cpu"


@cache
def _kernels() -> dict[torch.dtype, Kernel]:
    """Rows, columns, factor, source, destination: of each dtype that MKL copies; none, where torch has no MKL."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"))
        return {
            torch.float32: _kernel(library.MKL_Somatcopy, ctypes.c_float),
            torch.float64: _kernel(library.MKL_Domatcopy, ctypes.c_double),
        }
    except (OSError, AttributeError):
        return {}


def _kernel(function: ctypes._NamedFuncPointer, factor: type[ctypes.c_float] | type[ctypes.c_double]) -> Kernel:
    """With the types of its arguments."""
    size, place = ctypes.c_size_t, ctypes.c_void_p
    function.argtypes = [ctypes.c_char, ctypes.c_char, size, size, factor, place, size, place, size]
    function.restype = None
    return function
