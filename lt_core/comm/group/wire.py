"""Messages between kernel and ranks: a keyed hash in front of each, checked before anything is unpickled, both ways.

HMAC-SHA256(key of the way, body) body      ways: to a rank, from a rank, so that none can be sent back
"""

from __future__ import annotations

import hmac
import os
import pickle
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import zmq

from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text

KEY, SOCKET = "key", "socket"
CAP_BYTES = (1 << 30) + (1 << 20)  # of one message: a gibibyte of the user's, and what stands around it
ASK, SAY, HASH_BYTES = b"ask", b"say", 32
SPARE = 16  # descriptors for a context and a socket of zmq, which take 8


class Refused(ValueError):
    """A message that nobody who knows the key has sent."""


class Wire:
    """Both ends' way to write and read messages."""

    def __init__(self, key: bytes) -> None:
        self._keys = {way: hmac.digest(key, way, "sha256") for way in (ASK, SAY)}

    def pack(self, way: bytes, message: object) -> bytes:
        """A message as bytes."""
        body = pickle.dumps(message, protocol=5)
        return hmac.digest(self._keys[way], body, "sha256") + body

    def unpack(self, way: bytes, data: bytes) -> Any:
        """The message again. Errors: `Refused`."""
        if not HASH_BYTES < len(data) <= CAP_BYTES:
            raise Refused(f"a message of {len(data)} bytes")
        body = memoryview(data)[HASH_BYTES:]
        if not hmac.compare_digest(hmac.digest(self._keys[way], body, "sha256"), data[:HASH_BYTES]):
            raise Refused("a message with a wrong key")
        return pickle.loads(body)


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


def bound(folder: Path, opened: ExitStack) -> zmq.Socket[bytes]:
    """The socket to which the ranks of a folder come. Errors: `OSError` where no descriptors are left."""
    _refuse_crowd(folder)
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    opened.callback(context.term)
    socket = context.socket(zmq.ROUTER)
    opened.callback(socket.close, 0)
    for option, value in ((zmq.ROUTER_MANDATORY, 1), (zmq.LINGER, 0), (zmq.MAXMSGSIZE, CAP_BYTES)):
        socket.setsockopt(option, value)
    socket.bind(f"ipc://{folder / SOCKET}")
    return socket


def _refuse_crowd(folder: Path) -> None:
    """Errors: `OSError` where zmq would find no descriptors left: it ends this process then, without a word to it."""
    with ExitStack() as tried:
        for _ in range(SPARE):
            tried.callback(os.close, os.open(folder, os.O_RDONLY))
