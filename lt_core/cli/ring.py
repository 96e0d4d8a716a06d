"""`ltlab ring`: four processes sum a tensor by the ring; the grid, three witnesses, the traffic, and files to see."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from lt_core.base.units import bytes_text, seconds_text
from lt_core.cli import page, ring_files
from lt_core.comm.limits import RANK_BYTES, free_bytes

if TYPE_CHECKING:
    from lt_core.cli.trial import Trial

MANY = 8  # ranks up to which grid and matrix are printed; the HTML file has them for any number
CELL = 12  # characters of a witness, so that three of them and what they say fit in 80
COPIES = 4  # of the tensor on each rank: the input, its sum, what the sum should be, and what arrives


def ring(
    ranks: Annotated[int, typer.Option(help="Processes.")] = 4,
    elements: Annotated[int, typer.Option(help="Numbers of 8 bytes that each of them holds.")] = 1024,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the trace and the figures.")] = Path(
        "ltlab-ring"
    ),
) -> None:
    """A ring all-reduce on real processes, with its three witnesses."""
    _check(ranks, elements)
    with page.failures("ring"):
        ring_files.make(out)
        where = page.console()
        with where.status(f"starting {ranks} processes ..."):
            trial = run(ranks, elements)
        good = report(where, trial)
        ring_files.write(where, trial, out)
    if not good:
        raise typer.Exit(1)


def run(ranks: int, elements: int) -> Trial:
    """The ring on `ranks` real processes. Errors: those of `launch`."""
    from lt_core.cli.trial import Trial, on_each
    from lt_core.comm import launch

    return Trial(elements, launch(on_each, ranks, elements))


def report(out: Console, trial: Trial) -> bool:
    """Print what the run was and what its witnesses say; whether all is as it must be."""
    backend = trial.measured.backend
    what = f"{trial.elements:,} numbers ({trial.nbytes:,} bytes) on {trial.size} processes over {backend}"
    page.say(out, f"Ring all-reduce: {what}\n", style="bold")
    if trial.size <= MANY:
        page.say(out, "Rows are ranks, columns rounds; 3SEND2>1: chunk 3 goes to rank 1 in round 2")
        page.say(out, page.in_width(trial.schedule.grid(), out.width) + "\n")
    agree = _witnesses(out, trial)
    if trial.size <= MANY:
        _matrix(out, trial)
    return _badge(out, trial) and agree


def _witnesses(out: Console, trial: Trial) -> bool:
    page.say(out, "Three witnesses", style="bold")
    rows = page.table(out, "of each rank", ">law", ">simulated", ">measured", "")
    for quantity in trial.quantities():
        verdict = "all equal" if quantity.agree() else "NOT EQUAL"
        texts = map(_by_rank, (quantity.law, quantity.simulated, quantity.measured))
        rows.add_row(quantity.name, *texts, verdict, style="" if quantity.agree() else "bold red")
    times = (trial.law_s(), trial.simulated.makespan_s(), trial.measured.makespan_s())
    rows.add_row("seconds", *map(seconds_text, times), "measured, never tested")
    out.print(rows)
    page.say(out, f"law and simulation by the wire of two ranks alone: {trial.machine.inner}\n")
    return all(quantity.agree() for quantity in trial.quantities())


def _by_rank(values: list[int]) -> str:
    """One number where all ranks have the same, else each rank's, else from the least to the most."""
    if len(set(values)) == 1:
        return f"{values[0]:,}"
    each = " ".join(f"{n:,}" for n in values)
    return each if len(each) <= CELL else f"{min(values):,} to {max(values):,}"


def _matrix(out: Console, trial: Trial) -> None:
    sent = [one.traffic.counted for one in trial.seen]
    exact = f"{max(tally.bytes for tally in sent):,}"
    fits = (trial.size + 1) * (len(exact) + 2) + 3 <= out.width
    page.say(out, "Bytes sent: rows send, columns receive", style="bold")
    rows = page.table(out, "", *(f">{r}" for r in range(trial.size)), ">sum")
    for rank, tally in enumerate(sent):
        cells = [*(tally.bytes_to[peer] for peer in range(trial.size)), tally.bytes]
        rows.add_row(f"{rank}", *("." if not n else f"{n:,}" if fits else bytes_text(n) for n in cells))
    out.print(rows)


def _badge(out: Console, trial: Trial) -> bool:
    good = trial.right() and trial.same_bits()
    if good:
        text = f"\n≡ SAME BITS: {trial.elements:,} numbers on {trial.size} ranks, each the exact sum"
    else:
        wrong = ", ".join(str(r) for r, one in enumerate(trial.seen) if not one.right)
        text = f"\n✘ NOT THE SAME: wrong sums on ranks {wrong}" if wrong else "\n✘ NOT THE SAME: bits differ"
    page.say(out, text, style="bold green" if good else "bold red")
    return good


def _check(ranks: int, elements: int) -> None:
    if ranks < 1:
        raise typer.BadParameter(f"{ranks} ranks hold nothing; expected at least 1; try: --ranks 4")
    if elements < 1:
        raise typer.BadParameter(f"{elements} elements are no tensor; expected at least 1; try: --elements 1024")
    each, free = RANK_BYTES + COPIES * 8 * elements, free_bytes()
    if ranks * each > free:
        most = free // each
        attempt = f"--ranks {most}" if most else "fewer elements"
        got = f"{bytes_text(free)} are free, {ranks} ranks need {bytes_text(ranks * each)}"
        raise typer.BadParameter(f"the memory holds {most} such ranks; {got}; try: {attempt}")
