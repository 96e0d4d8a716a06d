"""What crosses between processes, as bytes: functions and classes defined anywhere, tensors without their GPU."""

from __future__ import annotations

import io
import pickle
from typing import Any

from lt_core.base.errors import UserError


def packed(name: str, value: object) -> bytes:
    """`value` as bytes. Errors: `UserError` saying what cannot be sent; `name` is what the user calls it."""
    import cloudpickle
    import torch

    data = io.BytesIO()
    try:
        torch.save(value, data, pickle_module=cloudpickle)
    except Exception as error:  # whatever the user's object raises when it is asked for its parts
        what = f"{name} cannot be sent to another process ({error})"
        raise UserError(what, f"a {_kind(value)}", "something that can be pickled") from error
    return data.getvalue()


def unpacked(data: bytes) -> Any:
    """The value again, tensors on the CPU."""
    import torch

    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=False, pickle_module=pickle)


def _kind(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
