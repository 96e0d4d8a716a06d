"""What teaching says: plain text everywhere, and in a notebook the same words with a chip that has sign, word, colour.

≡ SAME BITS   ≈ SAME   ≠ DIFFERENT   ✘ NOT THE SAME   ✔ holds   – not judged
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from lt_core.views.show import in_notebook

INK = "#1F2933"


class Chip(NamedTuple):
    """A sign, a word, and a frame and ground that only repeat them."""

    sign: str
    word: str
    frame: str
    ground: str

    @property
    def html(self) -> str:
        """The chip as it looks on a light page and on a dark one."""
        look = f"border:1px solid {self.frame};border-left-width:6px;border-radius:4px;padding:1px 8px;"
        look += f"background:{self.ground};color:{INK};font-weight:600;white-space:nowrap"
        return f'<span style="{look}">{self.sign} {html.escape(self.word)}</span>'


def good(sign: str, word: str) -> Chip:
    """A chip for what holds."""
    return Chip(sign, word, "#009E73", "#E3F4EE")


def near(sign: str, word: str) -> Chip:
    """A chip for what holds within a bound, or is worth a look."""
    return Chip(sign, word, "#0072B2", "#E3EFF7")


def bad(sign: str, word: str) -> Chip:
    """A chip for what does not hold."""
    return Chip(sign, word, "#D55E00", "#FBEBE0")


def undecided(sign: str, word: str) -> Chip:
    """A chip for what is not decided."""
    return Chip(sign, word, "#9AA5B1", "#F5F7FA")


def row(chip: Chip, text: str) -> str:
    """One line of HTML: a chip and words after it."""
    return f'<div style="margin:3px 0;line-height:1.7">{chip.html} {html.escape(text)}</div>'


def paragraphs(lines: Sequence[str]) -> str:
    """Lines of text as paragraphs of HTML."""
    return "".join(f'<div style="margin:3px 0">{html.escape(line)}</div>' for line in lines)


def say(text: str, shown: str = "") -> None:
    """Print the text; a notebook gets `shown`, the same in HTML, beside it."""
    if not shown or not in_notebook():
        print(text)
        return
    from IPython.display import display

    display({"text/plain": text, "text/html": shown}, raw=True)  # type: ignore[no-untyped-call]


def number(value: float | str) -> str:
    """`1.75`, `110,000`, `1,751,715,840`; a text as it is."""
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if value == int(value) and abs(value) < 1e15 else f"{value:,.6g}"


class AlreadyShown:
    """Mixed into records which the call that made them has shown: at the end of a cell they are not shown twice."""

    def _ipython_display_(self) -> None:
        """Nothing: `print` it to see it again."""
