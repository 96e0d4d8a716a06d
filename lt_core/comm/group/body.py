"""A cell's text as running code in a rank: what it finds, what it leaves, what its last expression is worth."""

from __future__ import annotations

import linecache
import marshal
import signal
import sys
import types
from importlib import import_module
from types import FrameType
from typing import Any

import torch

from lt_core.base.errors import UserError
from lt_core.base.units import bytes_text
from lt_core.comm import parcel
from lt_core.comm.group.cell import Job
from lt_core.comm.group.wire import refuse_large

LONGEST_VALUE = 1 << 16


class Body:
    """The names of a rank's cells, which stay from one to the next."""

    def __init__(self, rank: int) -> None:
        module = types.ModuleType("__main__")  # so that what a cell defines can be found, and pickled, as a script's
        sys.modules["__main__"] = module
        self.names: dict[str, Any] = module.__dict__
        self.names.update(rank=rank, torch=torch, lt=import_module("lt_core"))
        self._running = self._told = False
        signal.signal(signal.SIGINT, self._interrupt)

    def run(self, job: Job) -> tuple[str | None, dict[str, bytes]]:
        """The value of the last expression, as text, and what was wanted. Raises what the cell raises."""
        try:
            self._running, self._told = True, False
            for name, data in job.given.items():
                self.names[name] = parcel.unpacked(data, f"--in {name}")
            value = self._value(job)
            outs = {name: self._packed(name) for name in job.wanted}
        except SystemExit as error:
            if error.code not in (None, 0):
                raise
            value, outs = None, {name: self._packed(name) for name in job.wanted}  # as a script's: it ended well
        finally:
            self._running = False
            for name in job.passing:
                self.names.pop(name, None)
        return value, outs

    def _value(self, job: Job) -> str | None:
        body, last = marshal.loads(job.code)
        linecache.cache[job.name] = (len(job.text), None, job.text.splitlines(True), job.name)
        exec(body, self.names)
        value = eval(last, self.names) if last else None
        return None if value is None else _cut(repr(value))

    def _packed(self, name: str) -> bytes:
        if name not in self.names:
            what = f"--out {name}: this rank has no variable '{name}'"
            raise UserError(what, expected="a name that the cell sets", attempt=f"{name} = ... on all ranks")
        data = parcel.packed(f"--out {name}", self.names[name])
        refuse_large(f"--out {name}, a {type(self.names[name]).__name__},", len(data))
        return data

    def _interrupt(self, _sign: int, _frame: FrameType | None) -> None:
        if self._running and not self._told:
            self._told = True  # the signal is repeated, and what a cell does at its end is to be left alone
            raise KeyboardInterrupt


def flush(*streams: Any) -> None:
    """Write out what Python code has printed, whatever the user has made of the streams."""
    for stream in streams:
        try:
            stream.flush()
        except (AttributeError, ValueError, OSError):  # no stream at all, or closed
            continue


def _cut(text: str) -> str:
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[:LONGEST_VALUE]} ... ({bytes_text(len(text))} in all)"
