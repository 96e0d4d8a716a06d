"""The records of a trace: something that took time, an amount of memory, a value at a moment."""

from __future__ import annotations

from typing import NamedTuple

from lt_core.base.action import Action

JSON = str | int | float | bool | None | list["JSON"] | dict[str, "JSON"]


class Span(NamedTuple):
    """One action of one rank, from start to end on the trace's clock."""

    rank: int
    stream: str
    name: str
    start_s: float
    end_s: float
    nbytes: int = 0
    action: Action | None = None
    run: str = ""


class Level(NamedTuple):
    """Bytes alive on a rank from this moment on, by owner: parameters, gradients, optimizer, activations, ..."""

    rank: int
    at_s: float
    owner: str
    live_bytes: int
    module: str = ""


class Mark(NamedTuple):
    """A value at a moment: a loss scale, a histogram, a chunk table, a version read, an error."""

    rank: int
    at_s: float
    kind: str
    value: JSON
