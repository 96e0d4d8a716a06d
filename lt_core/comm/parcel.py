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
        kind = f"a {type(value).__module__}.{type(value).__qualname__}".replace("a builtins.", "a ")
        raise UserError(f"{name} cannot be sent to another process", kind, "what can be pickled", str(error)) from error
    return data.getvalue()


def unpacked(data: bytes) -> Any:
    """The value again, tensors on the CPU."""
    import torch

    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=False, pickle_module=pickle)
