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


def unpacked(data: bytes, name: str = "a value") -> Any:
    """The value again, tensors on the CPU. Errors: `UserError` where its parts cannot be put together here; `name`: as
    in `packed`."""
    import torch

    try:
        return torch.load(io.BytesIO(data), map_location="cpu", weights_only=False, pickle_module=pickle)
    except Exception as error:  # whatever the user's object raises when it is made of its parts
        what = f"{name} was sent, and cannot be put together in this process"
        attempt = "plain values and tensors, or a class that both can import"
        raise UserError(what, f"{type(error).__name__}: {error}", attempt=attempt) from error


def _kind(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
