"""The files around the code agree: one list of ranges, pins within it, a Binder that builds, notebook diffs as text."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, writes
from packaging.requirements import Requirement
from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_each_dependency_is_pinned_to_a_release_in_its_range():
    lines = [Requirement(line) for line in text("constraints.txt").splitlines() if not line.startswith("#")]
    pins = {pin.name.lower().replace("_", "-"): str(pin.specifier).removeprefix("==") for pin in lines}
    wanted = [
        *PROJECT["dependencies"],
        *(need for extra in PROJECT["optional-dependencies"].values() for need in extra),
    ]
    outside = [need for need in map(Requirement, wanted) if pins.get(need.name.lower(), "0") not in need.specifier]
    assert outside == [] and pins["torch"] == "2.13.0"


@pytest.mark.parametrize("name", ["environment.yml", "binder/environment.yml"])
def test_conda_s_files_repeat_no_range_of_ours(name):
    listed = YAML(typ="safe").load(text(name))["dependencies"]
    names = {re.split("[=<>]", entry)[0] for entry in listed if isinstance(entry, str)}
    assert names <= {"python", "pip", "pytorch-cpu"}
    assert [entry for entry in listed if isinstance(entry, dict)] in ([{"pip": ["-e ."]}], [])


@pytest.mark.processes
def test_binder_reads_our_files():
    command = [sys.executable, "-m", "repo2docker", "--no-build", "--debug", str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0, done.stderr
    assert (
        "binder/environment.yml" in done.stdout + done.stderr and "RUN ./binder/postBuild" in done.stdout + done.stderr
    )


def test_what_is_no_test_stands_without_the_tests():
    """The labs' tools and the benchmarks: tests import them, never the other way round."""
    files = [path for folder in ("lt_core", "labs", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    guilty = [str(path) for path in files if re.search(r"^\s*(from|import) tests\b", path.read_text("utf-8"), re.M)]
    assert len(files) > 100 and guilty == []


def test_every_command_that_the_readme_names_is_a_target():
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.M))
    named = set(re.findall(r"`?make ([a-z-]+)", text("README.md") + text("CONTRIBUTING.md")))
    assert named <= targets and {"lab", "test"} <= named


def test_without_a_python_that_is_new_enough_make_says_what_to_do(tmp_path):
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\n')
    old.chmod(0o755)
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text(text(name))
    done = subprocess.run(
        [shutil.which("make"), "check"], cwd=tmp_path, env={"PATH": str(tmp_path)}, capture_output=True
    )
    assert (
        b"needs Python 3.11 or newer; python3 here is Python 3.9.2. Install one, or name it: make PYTHON="
        in done.stdout
    )
    assert done.returncode != 0 and not (tmp_path / ".venv").exists()


def test_ci_runs_what_a_person_runs():
    assert "make test" in text(".ci/run") and ".ci/run" in text(".github/workflows/ci.yml")


def test_a_notebook_s_diff_is_its_sources_and_words(tmp_path):
    figure = new_output("display_data", data={"image/png": "iVBORw0KGgo=", "text/plain": "2 lanes"})
    cells = [new_markdown_cell("# 05"), new_code_cell("show(x)", outputs=[figure], metadata={"tags": ["see"]})]
    path = tmp_path / "book.ipynb"
    path.write_text(writes(new_notebook(cells=cells)))
    shown = subprocess.run(
        [sys.executable, ROOT / "labs/notebook_text.py", path], capture_output=True, text=True, check=True
    )
    assert shown.stdout == "--- markdown\n# 05\n--- code see\nshow(x)\n  > 2 lanes [picture]\n"
