"""`ltlab ring`: processes started from a shell, what it prints and writes, what it refuses before they are started."""

import json
import os
import subprocess
import sys

import psutil
import pytest
from typer.testing import CliRunner

from lt_core.base.errors import UserError
from lt_core.base.trace import Trace
from lt_core.cli import page, ring, ring_files
from lt_core.cli.main import app
from lt_core.cli.trial import Trial, on_each
from lt_core.comm import launch


def on_threads(ranks: int, elements: int) -> Trial:
    return Trial(elements, launch(on_each, ranks, elements, backend="threads"))


@pytest.fixture
def drawn(monkeypatch, tmp_path):
    """The command with ranks as threads; what it prints, and its exit code."""
    monkeypatch.setattr(ring, "run", on_threads)
    monkeypatch.setenv("COLUMNS", "80")
    return lambda *words: CliRunner().invoke(app, ["ring", "--out", str(tmp_path / "seen"), *words])


@pytest.fixture
def call(drawn, monkeypatch):
    """The same with a page that has no figures in it, for they take longer than all else."""
    monkeypatch.setattr(ring_files, "figures", lambda trial: [])
    return drawn


def test_it_shows_grid_witnesses_traffic_and_badge(call):
    done = call()
    assert done.exit_code == 0, done.output
    assert "Ring all-reduce: 1,024 numbers (8,192 bytes) on 4 processes over threads" in done.output
    assert "0SEND0>1+3ADD0<3" in done.output
    assert "≡ SAME BITS: 1,024 numbers on 4 ranks, each the exact sum" in done.output
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in done.output.splitlines() if line.strip()}
    assert rows["bytes"] == "12,288 12,288 12,288 all equal"
    assert rows["messages"] == rows["rounds"] == "6 6 6 all equal"
    assert rows["seconds"].endswith("measured, never tested")
    assert [rows[str(rank)] for rank in range(4)] == [
        ". 12,288 . . 12,288",
        ". . 12,288 . 12,288",
        ". . . 12,288 12,288",
        "12,288 . . . 12,288",
    ]
    assert done.output.count("all equal") == 3


def test_uneven_chunks_are_shown_rank_by_rank(call):
    assert "32 32 40 40  32 32 40 40  32 32 40 40  all equal" in call("--elements", "3").output


def test_many_ranks_are_shown_by_their_range(call):
    done = call("--ranks", "9", "--elements", "4")
    assert done.exit_code == 0, done.output
    assert "SEND" not in done.output and " to " in done.output


def test_one_rank_alone_has_nothing_to_send(call):
    done = call("--ranks", "1")
    assert done.exit_code == 0, done.output
    assert done.output.count("all equal") == 3


def test_it_writes_trace_and_figures_and_says_where(drawn, tmp_path):
    said = drawn().output
    folder = tmp_path / "seen"
    assert all(str(folder / name) in said for name in ("ring.html", "ring.chrome.json", "ring.trace.jsonl"))
    trace = Trace.load(folder / "ring.trace.jsonl")
    assert trace.ranks() == [0, 1, 2, 3] and len(trace.spans) == 48
    events = json.loads((folder / "ring.chrome.json").read_text())["traceEvents"]
    assert len([event for event in events if event["ph"] == "X"]) == 48
    html = (folder / "ring.html").read_text()
    assert html.count("<summary>In words</summary>") == 5
    assert "law = simulated = measured = 12,288 bytes" in html


@pytest.mark.parametrize("elements", ["9", "1024", "1000001"])
def test_no_line_but_a_path_is_wider_than_80_columns(call, tmp_path, elements):
    said = call("--ranks", "8", "--elements", elements).output
    assert max(len(line) for line in said.splitlines() if str(tmp_path) not in line) <= 80


def test_numbers_too_wide_for_the_matrix_are_rounded_there(call):
    lines = call("--ranks", "8", "--elements", "1000001").output.splitlines()
    (first,) = [line.split() for line in lines if line.startswith("0  ")]
    assert first == "0 . 14 MB . . . . . . 14 MB".split()


def test_witnesses_that_differ_end_with_1(call, monkeypatch):
    def one_byte_more(ranks: int, elements: int) -> Trial:
        trial = on_threads(ranks, elements)
        trial.seen[0].traffic.counted.add(1, 1, 0)
        return trial

    monkeypatch.setattr(ring, "run", one_byte_more)
    done = call()
    assert done.exit_code == 1
    assert "NOT EQUAL" in done.output and done.output.count("all equal") == 2


@pytest.mark.parametrize(
    ("fault", "text"),
    [({"right": False}, "✘ NOT THE SAME: wrong sums on ranks 2"), ({"digest": ""}, "✘ NOT THE SAME: bits differ")],
)
def test_sums_that_differ_end_with_1(call, monkeypatch, fault, text):
    def faulty(ranks: int, elements: int) -> Trial:
        seen = on_threads(ranks, elements).seen
        return Trial(elements, [*seen[:2], seen[2]._replace(**fault), *seen[3:]])

    monkeypatch.setattr(ring, "run", faulty)
    done = call()
    assert done.exit_code == 1
    assert text in done.output


def never(*_: object) -> Trial:
    raise AssertionError("ranks were started")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--ranks", "0"], "0 ranks hold nothing; expected at least 1; try: --ranks 4"),
        (["--ranks", "-2"], "-2 ranks hold nothing"),
        (["--elements", "0"], "0 elements are no tensor; expected at least 1; try: --elements 1024"),
        (["--ranks", "1000000"], "the memory holds"),
        (["--elements", "1000000000000"], "the memory holds 0 such ranks"),
    ],
)
def test_what_cannot_work_ends_with_2_before_ranks_start(call, monkeypatch, words, text):
    monkeypatch.setattr(ring, "run", never)
    done = call(*words)
    assert done.exit_code == 2
    assert text in plain(done.output)


def plain(said: str) -> str:
    """The text of a message that stands in a box or is wrapped."""
    return " ".join(said.replace("│", " ").split())


def test_the_largest_number_of_ranks_that_fits_is_named(call, monkeypatch):
    monkeypatch.setattr(ring, "run", never)
    free = type("Memory", (), {"available": 3 * 2**30})
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    assert "the memory holds 13 such ranks; 3.22 GB are free" in plain(call("--ranks", "20").output)
    assert "try: --ranks 13" in plain(call("--ranks", "20").output)


def test_a_folder_that_takes_no_files_is_named_before_ranks_start(call, monkeypatch, tmp_path):
    monkeypatch.setattr(ring, "run", never)
    (tmp_path / "file").write_text("")
    done = call("--out", str(tmp_path / "file"))
    assert done.exit_code == 1
    assert f"the folder {tmp_path / 'file'} takes no files; got File exists" in done.output
    assert "try: --out DIR" in done.output


def test_a_full_disk_is_named_before_ranks_start(call, monkeypatch):
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def write(self, data):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(ring, "run", never)
    monkeypatch.setattr(ring_files.tempfile, "TemporaryFile", lambda dir: Full())
    done = call()
    assert done.exit_code == 1
    assert "takes no files; got No space left on device" in done.output


def test_a_disk_that_fills_up_while_ranks_run_is_named(tmp_path):
    (tmp_path / "ring.chrome.json").symlink_to("/dev/full")
    with pytest.raises(UserError, match=f"the folder {tmp_path} takes no files; got No space left on device"):
        ring_files.write(page.console(), on_threads(2, 4), tmp_path)


@pytest.mark.processes
def test_from_a_shell_four_real_processes_agree_with_the_law(tmp_path):
    command = [sys.executable, "-m", "lt_core.cli.main", "ring", "--ranks", "4", "--elements", "1000"]
    command = [sys.executable, "-c", "from lt_core.cli.main import main; main()", *command[3:]]
    environment = os.environ | {"COLUMNS": "80"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=55)
    assert done.returncode == 0, done.stderr
    assert "on 4 processes over " in done.stdout and done.stdout.count("all equal") == 3
    assert "≡ SAME BITS: 1,000 numbers on 4 ranks" in done.stdout
    assert sorted(os.listdir(tmp_path / "ltlab-ring")) == ["ring.chrome.json", "ring.html", "ring.trace.jsonl"]
    assert Trace.load(tmp_path / "ltlab-ring" / "ring.trace.jsonl").backend in ("gloo", "nccl")
