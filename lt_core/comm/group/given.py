"""The kernel's objects on their way to the ranks."""

from __future__ import annotations

from typing import Any

from lt_core.comm.group.wire import refuse_large


def packed(name: str, value: Any) -> bytes:
    """`value` as bytes. Errors: `UserError` naming the variable, its type, and what is wrong with it."""
    from lt_core.comm import parcel

    label = f"--in {name}, a {type(value).__name__},"
    refuse_large(label, _nbytes(value))  # before a copy is made
    data = parcel.packed(f"--in {name}", value)
    refuse_large(label, len(data))
    return data


def _nbytes(value: Any) -> int:
    """How large it says it is; a class that answers to every name may say anything, or raise."""
    try:
        nbytes = value.nbytes
    except Exception:
        return 0
    return nbytes if isinstance(nbytes, int) else 0
