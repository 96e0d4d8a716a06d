"""What of the kernel's variables gets into a cell on ranks: values in its line, objects by `--in`. Nothing else does.

In the line `{x}` and `$x` stand for the value of the variable x, and `{{`, `}}`, `$$` for the sign itself. The line is
cut in words first, so a value stays one word whatever it holds. The body is nobody's to change.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lt_core.base.errors import UserError

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

FOUND = ("comm", "rank", "torch", "lt")  # what a cell finds
SIGN = re.compile(r"\{\{|\}\}|\$\$|\{([^{}]*)\}|\$([^\W\d]\w*)|[{}$]")


def expanded(word: str, names: Mapping[str, object]) -> str:
    """A word of the line with values in the place of names. Errors: `UserError` for a name that nobody has set.

    >>> expanded("{x}-$x", {"x": 3})
    '3-3'
    """
    return SIGN.sub(lambda found: _value(found, names), word)


def picked(wanted: Sequence[str], names: Mapping[str, object]) -> dict[str, object]:
    """The kernel's objects of these names. Errors: `UserError` for one that is not there."""
    for name in wanted:
        if name not in names:
            raise UserError(f"--in {name}: the kernel has no variable '{name}'", attempt="run the cell that makes it")
    return {name: names[name] for name in wanted}


def own(shell: InteractiveShell) -> set[str]:
    """The names that the user has set in the notebook: none of IPython's own, none that a cell has anyway."""
    hidden = shell.user_ns_hidden
    names = {name for name, value in shell.user_ns.items() if name not in hidden or hidden[name] is not value}
    return {name for name in names if not name.startswith("_")} - set(FOUND)


def _value(found: re.Match[str], names: Mapping[str, object]) -> str:
    sign, name = found[0], found[1] if found[1] is not None else found[2]
    if sign in ("{{", "}}", "$$"):
        return sign[0]
    if name is None or not name.strip().isidentifier():
        what = f"{sign} in the line of %%torchrun stands for nothing"
        raise UserError(what, expected="a variable's name, as {x} or $x", attempt=f"{sign[0] * 2} for the sign itself")
    if name.strip() not in names:
        what = f"{sign} in the line of %%torchrun: the kernel has no variable '{name.strip()}'"
        raise UserError(what, attempt="set it first")
    return str(names[name.strip()])
