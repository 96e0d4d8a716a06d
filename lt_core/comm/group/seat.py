"""A rank as the kernel's partner: it takes a job, runs it, prints all there is to print, and answers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, TextIO

import zmq

from lt_core.base.cluster import Wire as Link
from lt_core.comm import failure, output
from lt_core.comm.group import desk
from lt_core.comm.group.body import Body, flush
from lt_core.comm.group.cell import Hello, Job, Renew, Reply
from lt_core.comm.group.wire import ASK, KEY, SAY, Refused, Wire
from lt_core.comm.group.world import World


class Seat:
    """A rank's wire to the kernel, its communicator, its cells. `facts`: what the kernel left in the folder."""

    def __init__(self, folder: Path, rank: int, facts: dict[str, Any], streams: Sequence[TextIO]) -> None:
        self.rank, self._pid = rank, os.getpid()
        self._streams, self._mark = tuple(streams), b"\0" + facts["nonce"].encode()
        self._pipes = [os.dup(1), os.dup(2)]  # the user may close 1 and 2, or turn them elsewhere
        self._wire = Wire((folder / KEY).read_bytes())
        shape = Link(*facts["shape"]) if facts["shape"] else None
        self._world = World(folder, facts["backend"], rank, facts["size"], shape)
        self._body = Body(rank)
        self._comm = self._body.names["comm"] = self._world.renew(0, facts["timeout_s"])
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = desk.connected(context, folder, f"rank {rank}")
        desk.serve(context, folder, self._wire, self._world)
        self._say(Hello(rank, os.getpid()))

    def serve(self) -> NoReturn:
        """Answer, whatever comes."""
        while True:
            try:
                asked = self._wire.unpack(ASK, self._socket.recv())
            except Refused as error:
                print(f"refused: {error}", file=self._streams[1])
                continue
            reply = self._run(asked) if isinstance(asked, Job) else self._renew(asked)
            self._finish(asked.number)
            self._say(reply)

    def _run(self, job: Job) -> Reply:
        self._world.begin(job.name, job.timeout_s)
        try:
            value, outs = self._body.run(job)
        except BaseException as error:  # whatever the user's code may raise, a KeyboardInterrupt too
            self._end_fork(error)
            return self._failed(job.number, error)
        self._end_fork()
        return Reply(self.rank, job.number, value, outs, broken=self._world.broken)

    def _renew(self, asked: Renew) -> Reply:
        try:
            comm = self._world.renew(asked.generation, asked.timeout_s)
        except Exception as error:
            return self._failed(asked.number, error)
        if self._body.names.get("comm") is self._comm:  # else the user has given the name to something of his own
            self._body.names["comm"] = comm
        self._comm = comm
        return Reply(self.rank, asked.number)

    def _failed(self, number: int, error: BaseException) -> Reply:
        failed = failure.of_exception(self.rank, time.monotonic(), error)
        self._world.leave(f"rank {self.rank} raised {failed.kind}: {failed.message}")
        return Reply(self.rank, number, failure=failed, broken=True)

    def _end_fork(self, error: BaseException | None = None) -> None:
        """A fork that the cell has made and that comes out of it here ends as a script's would: one rank answers."""
        if os.getpid() == self._pid:
            return
        if error is not None:
            print(failure.error([failure.of_exception(self.rank, 0.0, error)]).details, file=self._streams[1])
        flush(*self._streams, sys.stdout, sys.stderr)
        os._exit(error is not None)

    def _finish(self, number: int) -> None:
        """Send everything printed on its way, and behind it the mark that says so."""
        flush(*self._streams)
        if (sys.stdout, sys.stderr) != self._streams:
            flush(sys.stdout, sys.stderr)
        output.flush()
        for pipe in self._pipes:
            os.write(pipe, self._mark + b" %d\n" % number)

    def _say(self, message: object) -> None:
        self._socket.send(self._wire.pack(SAY, message))
