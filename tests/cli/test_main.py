"""The commands as a shell sees them: help, version, exit codes, and what native Windows reads."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from lt_core import __version__
from lt_core.cli.main import app


def called(*words: str):
    return CliRunner().invoke(app, list(words), prog_name="ltlab")


def test_version():
    done = called("--version")
    assert (done.exit_code, done.output) == (0, f"ltlab {__version__}\n")


def test_help_names_every_command():
    done = called("--help")
    assert done.exit_code == 0
    assert all(name in done.output for name in ("lab", "doctor", "ring", "bench", "grade", "ps", "stop"))
    assert "..." not in done.output.split("Commands:")[1], "a summary that is cut"


@pytest.mark.parametrize("words", [["rings"], ["ring", "--rank"], ["ring", "--ranks", "four"], ["doctor", "now"]])
def test_a_wrong_use_ends_with_2(words):
    done = called(*words)
    assert done.exit_code == 2
    assert "Usage: ltlab" in done.output


@pytest.mark.parametrize("words", [["ring"], ["bench"], ["ps"]])
def test_on_native_windows_the_doctor_is_named(words, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    done = called(*words)
    assert done.exit_code == 1
    assert done.output == "ltlab does not run on native Windows; `ltlab doctor` says where it does\n"


@pytest.mark.processes
def test_help_comes_without_torch():
    script = "import sys; from lt_core.cli import main; print([m for m in ('torch', 'plotly') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50)
    assert done.stdout == "[]\n", done.stderr


@pytest.mark.processes
def test_an_output_that_knows_ascii_only_gets_question_marks():
    script = """
import sys
from lt_core.cli.main import main
sys.argv[1:] = ["--version"]
try:
    main()
finally:
    print("\\u2261")
"""
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50, env=ascii_only)
    assert done.stdout.splitlines() == [f"ltlab {__version__}", "?"], done.stderr
