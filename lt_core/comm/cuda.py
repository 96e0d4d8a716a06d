"""CUDA belongs to the ranks: a launching process that has initialised it holds a share of a GPU, which a rank lacks.

Nothing here initialises it, nothing is refused: no rank is forked, so all works. Where something else did, it is named:
the import or the line.
"""

from __future__ import annotations

import functools
import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import NamedTuple

from lt_core.base import torch_compat

ADVICE = "each rank finds its own GPU, and this process now holds a share of one: leave CUDA to the ranks"


class Place(NamedTuple):
    """A frame of Python code."""

    module: str
    function: str
    path: str
    line: int


class Watch:
    """Who has initialised CUDA in this process; watched from the moment it is made, or torch is there.

    by: "by `import x` (path, line 2)", "by line 3 of a cell, `torch.cuda.init()`", or nothing while nobody has.
    """

    def __init__(self, since: str) -> None:
        self.by, self._since, self._watching, self._told = "", since, False, False
        if not self._begun():
            sys.meta_path.insert(0, self)

    def tell(self, say: Callable[[str], object]) -> None:
        """Say who has, the first time that there is something to say."""
        if self.by and not self._told:
            self._told = True
            say(f"CUDA was initialised in this process {self.by}; {ADVICE}")

    def find_spec(self, *asked: object) -> None:
        """Finds nothing: it is asked before each import, and so sees that torch has come.

        It stays where it is: if it left while it is asked, the finder behind it would not be.
        """
        self._begun()

    def _begun(self) -> bool:
        if not self._watching and torch_compat.knows_cuda():
            torch_compat.when_cuda_begins(self._note)
            self._watching = True
        return self._watching

    def _note(self) -> None:
        self.by = culprit(sys._getframe(1)) if self._watching else self._since


@functools.cache
def watched() -> Watch:
    """This process's one watch."""
    return Watch("before lt_core.launch was imported")


def culprit(frame: FrameType | None) -> str:
    """Who calls, as seen from a frame: the import that is under way, else the line."""
    places = []
    while frame is not None:
        code = frame.f_code
        places.append(Place(str(frame.f_globals.get("__name__")), code.co_name, code.co_filename, frame.f_lineno))
        frame = frame.f_back
    own = [place for place in places if place.module.partition(".")[0] not in ("torch", "lt_core")] or places
    imported = [place for place in own if place.function == "<module>" and place.module != "__main__"]
    if imported:
        return f"by `import {imported[-1].module}` ({imported[-1].path}, line {imported[-1].line})"
    place = next((place for place in own if place.module == "__main__"), own[0])
    where = "a cell" if place.module == "__main__" else place.path
    return f"by line {place.line} of {where}, `{linecache.getline(place.path, place.line).strip()}`"
