"""A cell that is no Python, shown as Python shows it and without our own frames, which IPython would put above it."""

from __future__ import annotations

import traceback


class CellSyntaxError(ValueError):
    """What is wrong with the text of a cell; no rank has run it."""

    def __init__(self, error: SyntaxError) -> None:
        place = f" (line {error.lineno} of the cell)" if error.lineno else ""
        super().__init__(f"{error.msg}{place}")
        self.error = error

    def _render_traceback_(self) -> list[str]:
        return "".join(traceback.format_exception_only(self.error)).splitlines()
