"""`ltlab bench` in a checkout of its own: rows as JSON lines, tables in its README, clear words where it cannot run."""

import json
import signal
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lt_core.cli import bench
from lt_core.cli.main import app

ROWS = Path(__file__).parents[2] / "benchmarks" / "rows.py"
QUICK = """
from benchmarks.rows import against_law

def rows():
    yield against_law("quick", "first case", lambda: 1.0, 2.0)
    yield against_law("quick", "second case", lambda: 3.0, 2.0)
"""


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with the benchmarks `quick`, `slow`, `hangs` and `alone`; its `benchmarks` hides the real one."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "rows.py").write_text(ROWS.read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "quick.py").write_text(QUICK)
    (folder / "slow.py").write_text("def rows():\n    raise OSError('it ran')\n    yield")
    (folder / "alone.py").write_text("import no_such_peer")
    (folder / "hangs.py").write_text("import threading\n\ndef rows():\n    yield threading.Event().wait(30)")
    monkeypatch.setattr(bench, "CHECKOUT", tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        del sys.modules[name]


def called(*names: str):
    return CliRunner().invoke(app, ["bench", *names])


def test_rows_are_json_lines_and_the_table_is_written(checkout):
    done = called("quick")
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["case"], row["ratio"]) for row in rows] == [("first case", 0.5), ("second case", 1.5)]
    text = (checkout / "benchmarks" / "README.md").read_text()
    assert "| first case | 1 s | law: 2 s | 0.50 |" in text and "| second case |" in text
    assert "quick: 2 rows in" in done.stderr


def test_a_second_run_replaces_the_table(checkout):
    called("quick"), called("quick", "quick")
    assert (checkout / "benchmarks" / "README.md").read_text().count("| first case |") == 1


def test_all_run_where_none_is_named(checkout):
    for name in ("alone", "hangs"):
        (checkout / "benchmarks" / f"{name}.py").unlink()
    done = called()
    assert len(done.stdout.splitlines()) == 2
    assert done.exit_code == 1 and "ltlab bench: OSError: it ran" in done.stderr


def test_an_unknown_name_lists_those_there(checkout):
    done = called("quick", "fast")
    assert done.exit_code == 2
    assert "there is no benchmark 'fast'; there are: alone, hangs, quick, slow" in " ".join(done.output.split())


def test_a_missing_peer_is_named_with_what_brings_it(checkout):
    done = called("alone")
    assert done.exit_code == 1
    assert done.stderr == (
        "ltlab bench: benchmark alone needs no_such_peer, which is not installed; try: make bench-env\n"
    )


def test_outside_a_checkout_one_sentence_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "CHECKOUT", tmp_path)
    done = called()
    assert done.exit_code == 1
    assert done.stderr == (
        "ltlab bench: benchmarks belong to the repository, not to the installed package; got no benchmarks/ beside it; "
        "try: clone it, and there: make bench-env, ltlab bench\n"
    )


def test_a_row_that_hangs_is_stopped_at_the_limit(checkout, monkeypatch):
    """The clock was looked at between rows only."""
    monkeypatch.setattr(bench, "LIMIT_S", 0.2)
    before = signal.getsignal(signal.SIGALRM)
    done = called("quick", "hangs")
    assert done.exit_code == 1 and len(done.stdout.splitlines()) == 2
    assert "ltlab bench: benchmark hangs takes too long; got more than 0.2 s; expected under 10 minutes" in done.stderr
    assert signal.getsignal(signal.SIGALRM) is before


def test_the_benchmarks_of_this_checkout_are_found():
    there = bench.found(bench.CHECKOUT)
    assert "simulate" in there and "rows" not in there and "__init__" not in there
