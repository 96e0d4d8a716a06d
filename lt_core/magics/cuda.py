"""CUDA belongs to the ranks: a kernel that has initialised it holds a share of a GPU which a rank then lacks.

Nothing here initialises it. Where something else did, the next cell says what, once: the import or the line.
"""

from __future__ import annotations

import linecache
import sys
from types import FrameType
from typing import NamedTuple

from lt_core.base import torch_compat
from lt_core.comm.group import Line
from lt_core.magics.live import Screen

ADVICE = "each rank finds its own GPU, and this kernel now holds a share of one: keep CUDA to cells of %%torchrun"


class Place(NamedTuple):
    """A frame of Python code."""

    module: str
    function: str
    path: str
    line: int


class Cuda:
    """Who has initialised CUDA in this process; watched from the moment it is made."""

    def __init__(self) -> None:
        self._by, self._told = "", False
        self._watching = False
        torch_compat.when_cuda_begins(self._note)
        self._watching = True

    def tell(self, screen: Screen) -> None:
        """Say so, the first time that there is something to say."""
        if self._by and not self._told:
            self._told = True
            screen.show(Line((), "err", f"CUDA was initialised in this kernel {self._by}; {ADVICE}"))

    def _note(self) -> None:
        self._by = culprit(sys._getframe(1)) if self._watching else "before %%torchrun was loaded"


def culprit(frame: FrameType | None) -> str:
    """Who calls, as seen from a frame: the import that is under way, else the line."""
    places = []
    while frame is not None:
        code = frame.f_code
        places.append(Place(str(frame.f_globals.get("__name__")), code.co_name, code.co_filename, frame.f_lineno))
        frame = frame.f_back
    own = [place for place in places if place.module.partition(".")[0] not in ("torch", "lt_core")]
    imported = [place for place in own if place.function == "<module>" and place.module != "__main__"]
    if imported:
        return f"by `import {imported[-1].module}` ({imported[-1].path}, line {imported[-1].line})"
    place = next((place for place in own if place.module == "__main__"), own[0])
    where = "a cell" if place.module == "__main__" else place.path
    return f"by line {place.line} of {where}, `{linecache.getline(place.path, place.line).strip()}`"
