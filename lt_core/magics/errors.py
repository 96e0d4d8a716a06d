"""A cell that is no Python, shown as Python shows it and without our own frames, which IPython would put above it.

And a name that only the notebook has, with the option that copies it to the ranks.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Container

from lt_core.base.errors import RankError


class CellSyntaxError(ValueError):
    """What is wrong with the text of a cell; no rank has run it."""

    def __init__(self, error: SyntaxError) -> None:
        place = f" (line {error.lineno} of the cell)" if error.lineno else ""
        super().__init__(f"{error.msg}{place}")
        self.error = error

    def _render_traceback_(self) -> list[str]:
        return "".join(traceback.format_exception_only(self.error)).splitlines()


def hinted(error: RankError, names: Container[str]) -> RankError:
    """The error, with what to try where a rank missed one of these names, the notebook's."""
    missed = re.fullmatch(r"name '(\w+)' is not defined", error.message) if error.kind == "NameError" else None
    if not missed or missed[1] not in names:
        return error
    message = f"{error.message}; the notebook has it; try: --in {missed[1]}"
    return RankError(error.rank, error.kind, message, error.details)
