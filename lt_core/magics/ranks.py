"""A function on the ranks that a notebook holds already: no start to wait for, and their variables stay.

check("20.reduce_scatter", reduce_scatter, launch=magics.launch)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lt_core.comm.group import Group

# The communicator keeps a subset once it is made, and hands it out again: ending it would end the user's own of the
# same ranks.
TEXT = """\
_lt_result = None
_lt_comm = comm.subset(range(_lt_size)) if _lt_size < comm.size else comm
if rank < _lt_size:
    _lt_result = _lt_fn(_lt_comm, *_lt_args)
"""
PASSING = ("_lt_fn", "_lt_size", "_lt_args", "_lt_comm", "_lt_result")


def launch(fn: Callable[..., Any], size: int, *args: Any) -> list[Any]:
    """The results of `fn(comm, *args)` by rank, as `lt_core.launch` gives them: on the notebook's ranks if as many
    stand, else on new ones. Errors: those of `lt_core.launch`."""
    group = standing()
    if group is None or group.size < size:
        from lt_core.comm.launch import launch as anew

        return anew(fn, size, *args)
    return on_group(group, fn, size, *args)


def on_group(group: Group, fn: Callable[..., Any], size: int, *args: Any) -> list[Any]:
    """The same on a group's first `size` ranks, which are left as they were; what they print is printed."""
    from lt_core.comm.group import Cell

    given = {"_lt_fn": fn, "_lt_size": size, "_lt_args": args}
    cell = Cell(TEXT, "<launch>", given=given, wanted=("_lt_result",), passing=PASSING)
    return group.run(cell, lambda line: print(line.text)).outs["_lt_result"][:size]


def standing() -> Group | None:
    """The group of this notebook, if it holds one whose wires are as they are."""
    from IPython.core.getipython import get_ipython

    from lt_core.magics import NAME

    shell = get_ipython()
    magic = shell.magics_manager.registry.get(NAME) if shell else None
    group = magic.held.plain() if magic else None
    return group if group is not None and group.alive else None
