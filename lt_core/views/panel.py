"""A live figure: controls, the picture, and one line that says each change.

controls --value--> build(**values) --Figure--> the picture, which changes in place
                          | error               its words --> the line
                          +-----------------------------------^
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from lt_core.views.controls import label
from lt_core.views.controls import worded as said
from lt_core.views.picture import picture
from lt_core.views.show import Figure, worded

WIDGET = "application/vnd.jupyter.widget-view+json"
Build = Callable[..., Figure]


class Panel:
    """`box` is the widget to display. Setting a control's `value` does what moving it does.

    twin: what is shown should `build` fail at the start.  beside: further widgets in the row of the controls.
    prefix: whether the line begins with the control that was moved, or the figure's words are enough.
    """

    def __init__(
        self,
        build: Build,
        controls: Mapping[str, Any],
        twin: Figure,
        beside: Sequence[Any] = (),
        prefix: bool = True,
    ) -> None:
        import ipywidgets

        self.build, self.controls, self.prefix = build, dict(controls), prefix
        self.picture = picture()
        row = ipywidgets.HBox([*self.controls.values(), *beside], layout={"flex_flow": "row wrap"})
        self.box = ipywidgets.VBox([row, self.picture])
        self._show(twin, "")
        self._moved()
        for name, control in self.controls.items():
            control.observe(partial(self._moved, name), "value")

    def _moved(self, name: str = "", change: object = None) -> None:
        """Show what `build` makes of the controls as they stand, or what it raised."""
        moved = label(self.controls[name]) if name else ""
        where = f"{said(name)}: {moved}. " if name and self.prefix else ""
        try:
            figure = worded(self.build(**{key: control.value for key, control in self.controls.items()}))
            self._show(figure, "" if _begins_with(figure.words, moved) else where)
        except Exception as error:  # build is the learner's: whatever it raises is said, and the last picture stays
            with self.picture.hold_sync():
                self.picture.text = f"✘ {where}{_reason(error)}. The picture is the one before."
                self.picture.failed = True

    def _show(self, figure: Figure, where: str) -> None:
        drawn = figure.figure.to_json()
        with self.picture.hold_sync():  # one message, hence one change on the page
            self.picture.figure, self.picture.title = drawn, figure.title
            self.picture.text, self.picture.failed = where + figure.describe(), False

    def view(self) -> dict[str, Any]:
        """The widget's part of a display."""
        return {WIDGET: {"model_id": self.box.model_id, "version_major": 2, "version_minor": 0}}


def _begins_with(words: str, value: str) -> bool:
    """Whether the first sentence of a figure says the value that was set: then it need not be said before it."""
    return (
        bool(value)
        and re.search(rf"(?<![\w.,]){re.escape(value)}(?![\w,]|\.\d)", re.split(r"\.\s", words)[0]) is not None
    )


def _reason(error: Exception) -> str:
    """Its kind, its message, and the line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} (line {last.lineno} of {last.name})"
