"""`ltlab doctor`: what this machine has, proved by two ranks that sum a tensor; what to do about what is missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import typer
from rich.console import Console

from lt_core.cli import page
from lt_core.cli.facts import Facts, gather
from lt_core.cli.findings import Finding, findings

STYLE = {"ok": "green", "note": "yellow", "STOP": "bold red"}


def doctor() -> None:
    """What this machine has, and the next step for what is missing."""
    raise typer.Exit(examine(gather))


def examine(ask: Callable[[], Facts]) -> int:
    """Print the page of the facts that `ask` gathers; 1 if something stops the course, else 0."""
    out = page.console()
    with out.status("asking this machine, and two ranks on it ..."):
        facts = ask()
    found = findings(facts)
    render(out, found)
    if facts.trouble:
        page.say(out, f"\nWhat the launch of two ranks said\n{facts.trouble}")
    stopped = [one.thing for one in found if one.stops]
    good = "Ready. Next: ltlab ring, then make lab."
    page.say(out, f"\nNot ready: {', '.join(stopped)}." if stopped else f"\n{good}", style="bold")
    return 1 if stopped else 0


def render(out: Console, found: Sequence[Finding]) -> None:
    """The table of findings, and below it the next steps, a paragraph each."""
    out.print("What this machine has", style="bold")
    rows = page.table(out, "", "thing", "found")
    for one in found:
        rows.add_row(one.word, one.thing, one.found, style=STYLE[one.word] if one.step else "")
    out.print(rows)
    steps = [one for one in found if one.step]
    if steps:
        out.print("\nNext steps", style="bold")
    for one in steps:
        out.print(f"{one.word:4}  {one.thing}: {one.step}.", style=STYLE[one.word] if one.stops else "")
