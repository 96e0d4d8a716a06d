"""`%%torchrun`: a notebook's cell on real ranks, which stay between cells and end with the notebook.

    from lt_core import magics
    magics.load()        # a call, which fails loudly: an unknown %%magic passes checks with its body never run

| file | idea |
|---|---|
| torchrun | the magic: a line, a cell, a group of ranks |
| options, scope | the line in words; `{x}` and `$x` in it; what `--in` copies |
| raw | the body as it was typed |
| held, ranks | the one group of a notebook; a function on its ranks |
| commands | `%torchrun status`, `restart`, `stop` |
| live, paper, words | what ranks print while they run, and the text that a saved notebook keeps |
| expect, errors | an error that was wanted; a cell that is no Python, or lacks a name |
| script, source | `--save`: the same cell as a script |
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lt_core.base.errors import UserError
from lt_core.magics.ranks import launch

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

NAME = "Torchrun"
__all__ = ["NAME", "launch", "load", "load_ipython_extension", "unload_ipython_extension"]


def load() -> None:
    """Make `%%torchrun` known to this notebook; a second call changes nothing. Errors: `UserError` outside of one."""
    from IPython.core.getipython import get_ipython

    shell = get_ipython()
    if shell is None:
        raise UserError("there is no notebook here", expected="a cell of a notebook, or IPython", attempt="make lab")
    load_ipython_extension(shell)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """The same for `%load_ext lt_core.magics`."""
    from lt_core.base.torch_compat import settle
    from lt_core.magics.torchrun import Torchrun

    settle()
    if NAME not in shell.magics_manager.registry:
        shell.register_magics(Torchrun(shell))


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """End the notebook's ranks, and forget the magic."""
    magic = shell.magics_manager.registry.pop(NAME, None)
    if magic is not None:
        magic.close()
        for kind in ("line", "cell"):
            shell.magics_manager.magics[kind].pop("torchrun", None)
