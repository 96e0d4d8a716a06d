"""Messages between kernel and ranks: a keyed hash in front of each, checked before anything is unpickled, both ways.

[HMAC-SHA256(key, way + body), body]      way: b"ask" to a rank, b"say" from one, so that none can be sent back
"""

from __future__ import annotations

import hashlib
import hmac
import os
import pickle
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text

KEY, SOCKET = "key", "socket"
CAP_BYTES = (1 << 30) + (1 << 20)  # of one message: a gibibyte of the user's, and what stands around it
ASK, SAY = b"ask", b"say"


class Refused(ValueError):
    """A message that nobody who knows the key has sent."""


class Wire:
    """Both ends' way to write and read messages."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def pack(self, way: bytes, message: object) -> list[bytes]:
        """The frames of a message."""
        body = pickle.dumps(message, protocol=5)
        return [self._hash(way, body), body]

    def unpack(self, way: bytes, frames: Sequence[bytes]) -> Any:
        """The message again. Errors: `Refused`."""
        if len(frames) != 2 or len(frames[1]) > CAP_BYTES:
            raise Refused(f"a message of {len(frames)} parts")
        if not hmac.compare_digest(self._hash(way, frames[1]), frames[0]):
            raise Refused("a message with a wrong key")
        return pickle.loads(frames[1])

    def _hash(self, way: bytes, body: bytes) -> bytes:
        mac = hmac.new(self._key, way, hashlib.sha256)
        mac.update(body)
        return mac.digest()


def new_key(folder: Path) -> bytes:
    """A key that only this user can read."""
    key = secrets.token_bytes(32)
    with open(os.open(folder / KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(key)
    return key


def refuse_large(name: str, nbytes: int) -> None:
    """Errors: `UserError` for what is more than one message may carry."""
    if nbytes > 1 << 30:
        what = f"{name} is too large to be sent"
        raise UserError(what, bytes_text(nbytes), "at most 1 GiB", "a file that both can read")
