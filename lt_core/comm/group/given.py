"""The kernel's objects on their way to the ranks."""

from __future__ import annotations

from typing import Any

from lt_core.comm.group.wire import refuse_large


def packed(name: str, value: Any) -> bytes:
    """`value` as bytes. Errors: `UserError` naming the variable, its type, and what is wrong with it."""
    from lt_core.comm import parcel

    label = f"--in {name}, a {type(value).__name__},"
    refuse_large(label, getattr(value, "nbytes", 0))  # before a copy is made
    data = parcel.packed(f"--in {name}", value)
    refuse_large(label, len(data))
    return data
