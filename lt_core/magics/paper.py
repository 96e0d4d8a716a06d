"""The output of a notebook's cell: drawn on while the cell runs, and in the end one text.

The drawing begins as an output that holds nothing and is then updated, which whoever compares a stored notebook with
a new run never sees: only the text that is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from uuid import uuid4

if TYPE_CHECKING:
    from IPython.core.displaypub import DisplayPublisher


class Paper(Protocol):
    """Where a text can be drawn, again and again, and kept."""

    def draw(self, text: str) -> None:
        """Show this in the place of what was drawn before."""

    def keep(self, text: str) -> None:
        """Take the drawing away, and show this for good; an empty text is nothing at all."""


class Output:
    """The output of the cell that runs. `alone`: nothing else stands in it, so that all of it can be cleared."""

    def __init__(self, publisher: DisplayPublisher, alone: bool) -> None:
        self._publisher, self._alone, self._id = publisher, alone, ""

    def draw(self, text: str) -> None:
        """Show this in the place of what was drawn before."""
        if not self._id:
            self._id = uuid4().hex
            self._publish({})
        self._publish({"text/plain": text}, update=True)

    def keep(self, text: str) -> None:
        """Take the drawing away, and show this for good."""
        if self._id and self._alone:
            self._publisher.clear_output(wait=bool(text))  # type: ignore[no-untyped-call]
        elif self._id:
            self._publish({}, update=True)
        if text:
            self._publisher.publish({"text/plain": text}, {})

    def _publish(self, data: dict[str, str], update: bool = False) -> None:
        self._publisher.publish(data, {}, transient={"display_id": self._id}, update=update)
