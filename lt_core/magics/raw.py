"""A cell's body as it was typed.

IPython takes prompts (`>>> `) out of pasted code, and now and then sees one where a string has it; it also adds a
newline at the end. So the body is looked up in the cell itself, as long as it surely is that cell.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionInfo, InteractiveShell

HEAD = re.compile(r"(?:[^\S\n]*\n)*%%torchrun(?: ([^\n]*))?\n")


class Raw:
    """The cell that the kernel runs."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell, self._text = shell, ""
        shell.events.register("pre_run_cell", self._note)

    def is_cell(self, line: str, body: str) -> bool:
        """Whether a magic's line and body are the whole of the cell that runs."""
        head = HEAD.match(self._text)
        if not head:
            return False
        if (head[1] or "").rstrip() == line and self._text[head.end() :] in (body, body.removesuffix("\n")):
            return True
        calls = f"get_ipython().run_cell_magic('torchrun', {line!r}, {body!r})\n"
        return bool(self._shell.transform_cell(self._text) == calls)  # type: ignore[no-untyped-call]

    def body(self, line: str, body: str) -> str:
        """The body that a magic was handed, byte for byte as it was typed."""
        head = HEAD.match(self._text)
        typed = self._text[head.end() :] if head else body
        return typed if typed != body and self.is_cell(line, body) else body

    def close(self) -> None:
        """Look no more."""
        self._shell.events.unregister("pre_run_cell", self._note)

    def _note(self, info: ExecutionInfo) -> None:
        self._text = info.raw_cell if isinstance(info.raw_cell, str) else ""
