"""The files of `ltlab ring`: the trace, the same for Perfetto, and one page of figures that asks for nothing else."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from lt_core.base.errors import UserError
from lt_core.cli import page

if TYPE_CHECKING:
    from lt_core.cli.trial import Trial
    from lt_core.views import Figure

ROOM_BYTES = 8 * 2**20  # the page holds plotly itself, some 5 MB


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = f"the folder {folder} takes no files"
        raise UserError(what, error.strerror or error, "a folder to write in", "--out DIR") from error


def make(folder: Path) -> None:
    """The folder, with room in it, before any rank starts. Errors: `UserError` naming it and what is wrong with it."""
    with _told(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(ROOM_BYTES))
            probe.flush()


def write(out: Console, trial: Trial, folder: Path) -> None:
    """Write the trace twice and the figures once, and say where. Errors: `UserError` naming the folder."""
    from lt_core.views import to_html

    trial.measured.save(folder / "ring.trace.jsonl")
    with _told(folder):
        (folder / "ring.chrome.json").write_text(json.dumps(trial.measured.to_chrome()), encoding="utf-8")
    to_html(figures(trial), folder / "ring.html")
    shown = {"ring.html": "figures", "ring.chrome.json": "for ui.perfetto.dev", "ring.trace.jsonl": "the trace itself"}
    page.say(out, "\nWritten")
    for name, what in shown.items():
        page.say(out, f"  {folder / name}  {what}")


def figures(trial: Trial) -> list[Figure]:
    """The pictures of a run: witnesses, who did what when, who sends to whom, and the schedule."""
    from lt_core.views import Three, gantt, grid, wires, witnesses

    quantity = trial.quantities()[0]
    by_rank = {f"rank {r}": Three(*three) for r, three in enumerate(zip(*quantity[1:], strict=True))}
    same = len(set(by_rank.values())) == 1
    rows = {"each rank": by_rank["rank 0"]} if same else by_rank
    under = f"{trial.size} processes over {trial.measured.backend}, {trial.nbytes:,} bytes"
    return [
        witnesses(rows, title=f"Bytes that each rank sends to sum {trial.nbytes:,} bytes", under=under),
        gantt(trial.measured, under=f"measured, {under}"),
        gantt(trial.simulated, under=f"simulated on the wire {trial.machine.inner}"),
        wires([one.traffic for one in trial.seen], under=f"rows send, columns receive; {under}"),
        grid(trial.schedule),
    ]
