"""The closing words of `make test` tell the truth: costs, skips, and each reason to fail."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run_all import (
    BROWSER,
    Part,
    Result,
    by_place,
    costs,
    everything,
    quick,
    run,
    side_by_side,
    skip_faults,
    too_slow,
)

ROOT = Path(__file__).parent.parent


def test_seconds_are_summed_by_folder_and_by_lab():
    tests = {
        "tests/base/test_a.py::one": 1.0,
        "tests/base/test_b.py::two": 2.0,
        "labs/solutions/20_x.ipynb::Cell 1": 4.0,
    }
    results = [Result("tests", 0, 8.0, {"seconds": tests})]
    assert by_place(results) == {"tests/base": 3.0, "labs/solutions/20_x.ipynb": 4.0}
    assert costs(results)[:3] == [
        "-- The ten dearest",
        "      4.0 s  labs/solutions/20_x.ipynb::Cell 1",
        "      2.0 s  tests/base/test_b.py::two",
    ]


def test_a_slow_lab_and_slow_labs_are_faults():
    labs = {f"labs/solutions/{number}_x.ipynb::Cell 1": 59.0 for number in range(11)}
    assert too_slow([Result("labs", 0, 1.0, {"seconds": labs})]) == ["the labs took 649 s, at most 600"]
    labs = {"labs/solutions/20_x.ipynb::Cell 1": 40.0, "labs/solutions/20_x.ipynb::Cell 2": 21.0}
    assert too_slow([Result("labs", 0, 1.0, {"seconds": labs})]) == ["labs/solutions/20_x.ipynb took 61 s, at most 60"]


def test_another_number_of_skips_is_a_fault():
    assert skip_faults(3, 3) == []
    assert skip_faults(4, 3) == ["4 tests were skipped, .ci/skips expects 3"]


def test_a_part_that_exits_with_an_error_failed(tmp_path):
    assert run(Part("bad", ["py_compile", "no_such_file.py"]), tmp_path).code == 1
    assert run(Part("good", ["py_compile", "tests/run_all.py"]), tmp_path).code == 0


@pytest.mark.processes
def test_lanes_run_side_by_side_and_each_says_its_own(tmp_path, capfd):
    os.mkfifo(tmp_path / "pipe")  # who opens an end waits for who opens the other
    reads, writes = (
        Part(name, ["timeit", "-n1", "-r1", f"open({str(tmp_path / 'pipe')!r}, {mode!r}).close(); print('{name} met')"])
        for name, mode in (("reads", "r"), ("writes", "w"))
    )
    found = side_by_side([[reads], [writes, Part("bad", ["py_compile", "no_such_file.py"])]], tmp_path)
    assert {result.name: result.code for result in found} == {"reads": 0, "writes": 0, "bad": 1}
    said = capfd.readouterr().out
    assert "reads met" in said and "writes met" in said and "no_such_file.py" in said


def test_every_test_stands_in_one_part():
    for rounds in (everything(), quick()):
        parts = [part for lanes in rounds for lane in lanes for part in lane if part.reports]
        named = [word for part in parts for word in part.arguments if word.startswith("tests/")]
        assert all((ROOT / place).exists() for place in named) and len(named) == len(set(named))
        (rest,) = [part for part in parts if part.arguments[-1] == "tests"]
        ignored = {word.removeprefix("--ignore=") for word in rest.arguments if word.startswith("--ignore=")}
        assert ignored == {*named, BROWSER}


TESTS = """
import pytest
def test_passes(): assert True
def test_fails(): assert False
def test_skips(): pytest.skip("no card")
@pytest.mark.xfail(reason="known")
def test_hides(): assert False
@pytest.mark.processes
def test_starts_processes(): assert True
def test_asks_for_processes(processes): assert True
@pytest.fixture
def processes(): return None
@pytest.mark.parametrize("size", [2, pytest.param(7, marks=pytest.mark.full)])
def test_sizes(size): assert True
@pytest.fixture(params=["threads"])
def ranks(): return None
@pytest.mark.parametrize("size", [4, 5])
def test_ranks(ranks, size): assert True
"""


def report(folder, *options):
    (folder / "test_sample.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-c", ROOT / "pyproject.toml", "-p", "no:cacheprovider"]
    command += ["-p", "tests.report", f"--report={folder}/report.json", *options, folder / "test_sample.py"]
    subprocess.run(command, cwd=ROOT, capture_output=True, timeout=50)
    return json.loads((folder / "report.json").read_text())


@pytest.mark.processes
def test_the_report_counts_outcomes_and_names_why_a_test_was_skipped(tmp_path):
    found = report(tmp_path)
    assert found["counts"] == {"passed": 7, "failed": 1, "skipped": 2}
    assert {name.split("::")[1]: why for name, why in found["skips"].items()} == {
        "test_skips": "no card",
        "test_hides": "known",
    }
    assert len(found["seconds"]) == 10


@pytest.mark.processes
def test_the_quick_round_leaves_out_what_starts_processes_and_what_is_of_the_full_round(tmp_path):
    names = {name.split("::")[1] for name in report(tmp_path, "--quick")["seconds"]}
    assert names == {"test_passes", "test_fails", "test_skips", "test_hides", "test_sizes[2]", "test_ranks[threads-4]"}
