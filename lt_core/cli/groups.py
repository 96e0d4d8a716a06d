"""`ltlab ps` and `ltlab stop`: the ranks that your notebooks hold, whichever notebook that is, and their end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from lt_core.base.errors import UserError
from lt_core.cli import page

if TYPE_CHECKING:
    from lt_core.comm.group import Status


NONE = "no notebook holds ranks"


def ps() -> None:
    """Show the ranks that your notebooks hold."""
    with page.failures("ps"):
        from lt_core.comm.group import find

        show(page.console(), find())


def stop(
    everything: Annotated[bool, typer.Option("--all", help="Of all notebooks, where there are several.")] = False,
) -> None:
    """End the ranks that your notebooks hold."""
    with page.failures("stop"):
        from lt_core.comm.group import find, stop_all

        held = find()
        if len(held) > 1 and not everything:
            names = ", ".join(one.owner for one in held)
            raise UserError(f"{len(held)} notebooks hold ranks", names, "one, or all of them", "ltlab stop --all")
        stopped = [f"stopped: {one.ranks}" for one in stop_all()]  # and sweeps, where none lives
        page.say(page.console(), "\n".join(stopped) or NONE)


def show(out: Console, groups: Sequence[Status]) -> None:
    """The table of groups; a sentence where there are none."""
    if not groups:
        page.say(out, NONE)
        return
    rows = page.table(out, "notebook", ">ranks", "over", "since", ">kernel")
    for one in groups:
        since = time.strftime("%H:%M:%S", time.localtime(one.since_s))
        facts = (str(one.size), one.backend, since, str(one.kernel))
        rows.add_row(one.owner, *(facts if one.size else ("?", "?", since, "?")))
    out.print(rows)
    for one in groups:
        if not one.size:
            page.say(out, f"This version cannot read what that one wrote in {one.folder}; ltlab stop ends it, too.")
