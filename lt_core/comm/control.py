"""An object of the launching process, called from its ranks: `launch(fn, 4, served(queue))`.

    rank: queue.get(timeout=9)  --0, "get"-->  launching process: queue.get(...), in a thread of that connection
    rank: the value             <---value----

A Unix socket in the launch's private folder. Both ends show that they know its key before anything is unpickled.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import secrets
import socket
import threading
from collections.abc import Sequence
from functools import partial
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any, NoReturn

from lt_core.base.errors import Aborted, UserError
from lt_core.comm import host

SOCKET, KEY = "control", "key"


class Served:
    """An object that stays in the launching process; `served` makes it."""

    def __init__(self, target: object) -> None:
        self.target = target

    def __reduce__(self) -> NoReturn:
        raise UserError("served(...) stands inside another value", expected="an argument of launch itself")


def served(target: object) -> Any:
    """An argument of `launch`: ranks that are threads get `target` itself, processes a stand-in for its methods.

    Several ranks may be inside a method at once, and for long, as in `queue.get(timeout=9)`. What it raises, the rank
    raises. Give whatever waits a timeout: a call cannot be ended from outside, so one that waits outlives its launch,
    and takes what the next one puts there.
    """
    return Served(target)


class StandIn:
    """A rank's end: calls go over its thread's own connection. They raise `Aborted` once the launch has ended."""

    def __init__(self, index: int) -> None:
        self._index, self._mine = index, threading.local()

    def __reduce__(self) -> tuple[type[StandIn], tuple[int]]:
        return StandIn, (self._index,)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name: str, *args: object, **kwargs: object) -> Any:
        import cloudpickle

        request = cloudpickle.dumps((self._index, name, args, kwargs))
        try:
            if not hasattr(self._mine, "wire"):
                self._mine.wire = _connected(Path(host.environment(host.MARK)))
            self._mine.wire.send_bytes(request)
            went_well, value = pickle.loads(self._mine.wire.recv_bytes())
        except (EOFError, ConnectionError, FileNotFoundError):
            raise Aborted("the launch has ended") from None
        except BaseException:  # interrupted half-way: the next answer would be this call's
            vars(self._mine).pop("wire", None)
            raise
        if went_well:
            return value
        raise value


class Door:
    """The launching process's end: what it serves, by number."""

    def __init__(self, folder: Path, targets: Sequence[object]) -> None:
        self._targets, self._key = targets, secrets.token_bytes(32)
        with open(os.open(folder / KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(self._key)
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(str(folder / SOCKET))
        self.socket.listen(64)
        self._held: list[socket.socket] = []

    def accept(self) -> None:
        """Let in who knocks: a thread serves each connection until it ends."""
        held, _ = self.socket.accept()
        self._held.append(held)
        threading.Thread(target=self._serve, args=(held,), daemon=True, name="control wire").start()

    def close(self) -> None:
        """End all connections; ranks that wait there are freed."""
        for held in [self.socket, *self._held]:
            with contextlib.suppress(OSError):  # the other end may be gone
                held.shutdown(socket.SHUT_RDWR)
            held.close()

    def _serve(self, held: socket.socket) -> None:
        over = contextlib.suppress(EOFError, OSError, AuthenticationError)  # each means: it has ended
        with held, over, Connection(os.dup(held.fileno())) as connection:
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            while True:
                index, name, args, kwargs = pickle.loads(connection.recv_bytes())
                connection.send_bytes(_answer(self._targets[index], name, args, kwargs))


def split(args: Sequence[object]) -> tuple[list[object], list[object]]:
    """Arguments as a rank gets them, with stand-ins, and the objects which these stand for."""
    targets = [arg.target for arg in args if isinstance(arg, Served)]
    numbers = iter(range(len(targets)))
    return [StandIn(next(numbers)) if isinstance(arg, Served) else arg for arg in args], targets


def _connected(folder: Path) -> Connection:
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(str(folder / SOCKET))
        connection = Connection(wire.detach())
    key = (folder / KEY).read_bytes()
    answer_challenge(connection, key)
    deliver_challenge(connection, key)
    return connection


def _answer(target: object, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> bytes:
    import cloudpickle

    try:
        data: bytes = cloudpickle.dumps((True, getattr(target, name)(*args, **kwargs)))
        return data
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> bytes:
    import cloudpickle

    plain: bytes = cloudpickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    try:
        data: bytes = cloudpickle.dumps((False, error))
        pickle.loads(data)
    except Exception:  # an exception that cannot be pickled still says what it is
        return plain
    return data
