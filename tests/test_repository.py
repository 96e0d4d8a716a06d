"""The files around the code agree: one list of ranges, pins within it, a Binder that builds, notebook diffs as text."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, writes
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from ruamel.yaml import YAML

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


NEEDED = [*PROJECT["dependencies"], *(need for extra in PROJECT["optional-dependencies"].values() for need in extra)]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def test_each_dependency_is_pinned_to_a_release_in_its_range():
    lines = [Requirement(line) for line in text("constraints.txt").splitlines() if not line.startswith("#")]
    pins = {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in lines}
    wanted = [(canonicalize_name(need.name), need.specifier) for need in map(Requirement, NEEDED)]
    assert [name for name, allowed in wanted if pins.get(name, "0") not in allowed] == []
    assert pins["torch"] == "2.13.0"


def test_what_tests_and_labs_import_is_asked_for():
    """It would be there by chance: brought by another package, until that one does without."""
    asked = {canonicalize_name(Requirement(need).name) for need in NEEDED} | {"ipython", "traitlets"}  # ipywidgets' own
    brings, ours = packages_distributions(), {"lt_core", "tests", "labs", "benchmarks"}
    for path in [path for folder in ("tests", "labs") for path in (ROOT / folder).rglob("*.py")]:
        for name in imported(ast.parse(path.read_text(encoding="utf-8"))) - ours - set(sys.stdlib_module_names):
            found = {canonicalize_name(package) for package in brings.get(name, [name])}
            assert found & asked, f"{path.relative_to(ROOT)} imports {name}"


def imported(tree):
    """The first names of all modules that the code imports."""
    nodes = [*ast.walk(tree)]
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.split(".")[0] for name in names}


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


@pytest.mark.parametrize(
    ("target", "line"),
    [
        (["lab", "ARGS=--no-browser --port 8899"], "ltlab lab --no-browser --port 8899"),
        (["bench-env"], "-e '.[bench]'"),
    ],
    ids=["lab", "bench-env"],
)
def test_make_hands_on_what_it_was_given(target, line):
    command = ["make", "--dry-run", "--always-make", "PYTHON=python3", *target]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and any(said.rstrip().endswith(line) for said in done.stdout.splitlines()), done


def test_each_change_is_checked_on_the_oldest_python_and_on_binder_s_without_a_gpu_s_torch():
    job = YAML(typ="safe").load(text(".github/workflows/ci.yml"))["jobs"]["test"]
    (binder,) = re.findall(r"python=(\S+)", text("binder/environment.yml"))
    assert {PROJECT["requires-python"].removeprefix(">="), binder} <= set(job["strategy"]["matrix"]["python"])
    assert "vars.PIP_EXTRA_INDEX_URL" in job["env"]["PIP_EXTRA_INDEX_URL"]  # no host of an index stands in a file


SUDO = 'exec env -i PATH="$PATH" HERE="$HERE" "$@"'  # as sudo does: the caller's variables are gone
APT = 'echo "$DEBIAN_FRONTEND $*" >> "$HERE/asked"; case "$*" in *chromium) exit 100;; esac'


def test_a_machine_whose_apt_has_no_chromium_gets_the_rest_and_is_checked(tmp_path):
    programs = {"sudo": SUDO, "apt-get": APT, "id": "echo 1000", "python3": "exit 1", "make": 'echo "made $1, $CI"'}
    for name in ("bash", "env", "dirname", "grep"):
        (tmp_path / name).symlink_to(shutil.which(name))
    for name, script in programs.items():
        (tmp_path / name).write_text(f"#!{shutil.which('sh')}\n{script}\n")
        (tmp_path / name).chmod(0o755)
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    alone = {"PATH": str(tmp_path), "HERE": str(tmp_path)}
    done = subprocess.run([tmp_path / ".ci/run"], env=alone, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (0, "made test, true\n"), done
    assert done.stderr == "apt-get has no chromium; what needs it is skipped\n"
    packages = "chromium fontconfig fonts-liberation python3-venv".split()
    asked = ["update", *(f"install --no-install-recommends {package}" for package in packages)]
    assert (tmp_path / "asked").read_text().splitlines() == [f"noninteractive -qq {words}" for words in asked]


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
