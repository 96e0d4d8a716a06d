"""`ltlab`: the commands. Each ends with 0 (fine), 1 (something is missing or wrong) or 2 (usage)."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated

import typer

from lt_core import __version__
from lt_core.cli import bench, doctor, grade, groups, lab, ring

app = typer.Typer(
    name="ltlab", no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
app.command("lab", context_settings=lab.PASSED_ON)(lab.lab)
app.command("doctor")(doctor.doctor)
app.command("ring")(ring.ring)
app.command("bench")(bench.bench)
app.command("grade")(grade.grade)
app.command("ps")(groups.ps)
app.command("stop")(groups.stop)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"ltlab {__version__}")
        raise typer.Exit


@app.callback()
def ltlab(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """How large neural networks are trained, as running code: the checks and runs of LT-Lab."""
    if sys.platform == "win32" and context.invoked_subcommand != "doctor":
        typer.echo("ltlab does not run on native Windows; `ltlab doctor` says where it does", err=True)
        raise typer.Exit(1)


def main() -> None:
    """Run the command that the shell named; an output that cannot show a character shows `?` instead."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()
