"""A cell's body as it was typed, the line at which it begins, and the number of the cell.

IPython takes prompts (`>>> `) out of pasted code, and now and then sees one where a string has it; it also adds a
newline at the end. So the body is looked up in the cell itself, as long as it surely is that cell.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionInfo, InteractiveShell

HEAD = re.compile(r"(?:[^\S\n]*\n)*%%torchrun(?: ([^\n]*))?\n")
MAGIC = re.compile(r"^[ \t>]*%%torchrun\b.*\n", re.MULTILINE)  # with a prompt, or below another magic, it runs too


class Raw:
    """The cell that the kernel runs."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell, self._text, self._counted = shell, "", False
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

    def first_line(self, body: str) -> int:
        """At which line of its cell a body begins, all lines counted as the notebook counts them; 1 for another's."""
        magic = MAGIC.search(self._text)
        if not magic or body.rstrip("\n").count("\n") != self._text.rstrip("\n").count("\n", magic.end()):
            return 1
        return self._text.count("\n", 0, magic.end()) + 1

    @property
    def number(self) -> int:
        """The number in the cell's prompt; of a cell that is not counted, the next one's."""
        if self._counted:  # some versions of IPython have counted it already, others will; this one knows
            return int(self._shell.displayhook.prompt_count)
        return self._shell.execution_count

    def close(self) -> None:
        """Look no more."""
        self._shell.events.unregister("pre_run_cell", self._note)

    def _note(self, info: ExecutionInfo) -> None:
        self._text = info.raw_cell if isinstance(info.raw_cell, str) else ""
        self._counted = bool(info.store_history)
