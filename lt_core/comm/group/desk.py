"""A rank's control thread: it answers the kernel whatever the rank itself is doing."""

from __future__ import annotations

import threading
from pathlib import Path

import zmq

from lt_core.base import torch_compat
from lt_core.comm.group.cell import Ask, Told
from lt_core.comm.group.wire import ASK, CAP_BYTES, SAY, SOCKET, Refused, Wire
from lt_core.comm.group.world import World


def connected(context: zmq.Context[zmq.Socket[bytes]], folder: Path, name: str) -> zmq.Socket[bytes]:
    """A socket to the kernel, known to it by that name."""
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.IDENTITY, name.encode())
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.MAXMSGSIZE, CAP_BYTES)
    socket.connect(f"ipc://{folder / SOCKET}")
    return socket


def serve(context: zmq.Context[zmq.Socket[bytes]], folder: Path, wire: Wire, world: World) -> None:
    """Answer in a thread of its own, until the process ends."""
    threading.Thread(target=_serve, args=(context, folder, wire, world), daemon=True, name="desk").start()


def _serve(context: zmq.Context[zmq.Socket[bytes]], folder: Path, wire: Wire, world: World) -> None:
    socket = connected(context, folder, f"desk {world.rank}")
    while True:
        try:
            asked: Ask = wire.unpack(ASK, socket.recv())
        except Refused:
            continue
        answer: object = world.free(asked.reason) if asked.what == "free" else torch_compat.flight()
        socket.send(wire.pack(SAY, Told(world.rank, asked.what, answer)))
