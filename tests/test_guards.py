"""Under `-p tests.guards` each cell fails that lax nbval lets pass and must not, and no good cell does."""

import base64
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.guards import live_faults, magics, stored_faults

ROOT = Path(__file__).parent.parent
SHOW = """
from IPython.display import display
figure = {{"application/vnd.plotly.v1+json": {{"data": []}}}}
display({{**figure, "text/plain": "{words}"}}, raw=True)
"""


def cell(source, *outputs, tags=(), count=1):
    return new_code_cell(source, outputs=list(outputs), execution_count=count, metadata={"tags": list(tags)})


def error(name):
    return new_output("error", ename=name, evalue="", traceback=[name])


def picture(words, nbytes=0):
    data = base64.b64encode(bytes(nbytes)).decode()
    return new_output("display_data", data={"image/png": data, "text/plain": words})


def live(kind):
    return new_output("display_data", data={f"application/vnd.{kind}+json": {}, "text/plain": "4 lanes"})


EXERCISE = """
def total(parts):
    ### BEGIN SOLUTION
    return sum(parts)
    ### END SOLUTION
"""


GOOD = {
    "plain": cell("x = 1"),
    "writes a file": cell("file = open('left.txt', 'w')\nfile.close()"),
    "printed": cell("print(x)", new_output("stream", text="1\n"), tags=["nbval-check-output"]),
    "stock magic": cell("%time x", new_output("stream", text="Wall time: 1 us")),
    "no magic": cell("y = (7\n  %3)"),
    "raises": cell("raise KeyError(3)", error("KeyError"), tags=["raises-exception"]),
    "same words": cell(SHOW.format(words="4 lanes"), picture("4 lanes", 60_000)),
    "71 characters": cell("x = " + "1" * 67),
    "exercise": cell(EXERCISE),
    "handed over": cell("list(map(total, [[1], [2]]))\ndef later():\n    return total([3])"),
}
BAD = {
    "unregistered magic": cell("%no_such_magic 4"),
    "UsageError on stderr": cell("import sys; print('UsageError: x', file=sys.stderr)"),
    "it did not raise": cell("x = 2", tags=["raises-exception"]),
    "another error": cell("raise KeyError(3)", error("ValueError"), tags=["raises-exception"]),
    "words differ": cell(SHOW.format(words="4 lanes"), picture("3 lanes")),
    "no output is stored": cell("x = 3", tags=["nbval-check-output"]),
    "NBVAL comment": cell("# NBVAL_IGNORE_OUTPUT\nx = 4"),
    "no execution count": cell("x = 5", count=None),
    "skipped cell": cell("x = 6", tags=["nbval-skip"]),
    "not tagged raises-exception": cell("x = 7", error("ValueError")),
    "line 2 has 72 characters": cell("x = 8\nx = " + "1" * 68),
    "total is an exercise, but a cell calls it": cell("total([1, 2])"),
    "stores a widget": cell(SHOW.format(words="4 lanes"), live("jupyter.widget-view"), picture("4 lanes")),
    "stores a plotly figure": cell(SHOW.format(words="4 lanes"), live("plotly.v1"), picture("4 lanes")),
    "a picture of 60,001 bytes": cell(SHOW.format(words="4 lanes"), picture("4 lanes", 60_001)),
}


def test_good_cells_have_no_stored_fault():
    assert {name: list(stored_faults(good, {"total"})) for name, good in GOOD.items()} == {name: [] for name in GOOD}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("%%torchrun -n 4\n%inner\nprint(1)", ["torchrun"]),
        ("x = 1\n%time x\ny = %timeit x", ["time", "timeit"]),
        ("!ls\nfiles = !ls", ["!", "!"]),
        ("a = (b\n  %c)\nprint('%d' %a)", []),
    ],
)
def test_magics_are_those_that_ipython_would_call(source, found):
    assert magics(source) == found


def test_a_missing_figure_is_a_difference_of_words():
    assert list(live_faults(GOOD["same words"], [])) == [
        "the figures' words differ from the stored ones: ['4 lanes'] became []"
    ]


LATE = [cell("import time; time.sleep(90)"), cell("x = 9")]  # and what comes after a cell that lasts too long


@pytest.fixture
def busy():
    """One core of the machine has something else to do."""
    with subprocess.Popen([sys.executable, "-S", "-E", "-c", "while True: pass"]) as spinner:
        yield
        spinner.kill()


def run(folder, *options, more=(), by=()):
    """Return lax nbval's report on a notebook of all cells, the good ones first. by: what python runs pytest with."""
    nbformat.write(new_notebook(cells=[*GOOD.values(), *BAD.values(), *more]), folder / "book.ipynb")
    command = [sys.executable, *by, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-p", "no:cacheprovider", *options]
    command += ["--nbval-lax", "--nbval-current-env", "--color=no", folder / "book.ipynb"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=55).stdout


@pytest.mark.processes
def test_each_bad_cell_fails_and_says_why_and_the_good_ones_pass(tmp_path, busy):
    """A cell that lasts too long, too, on a busy machine: it is interrupted and named, and what follows is run."""
    report = run(tmp_path, "-p", "tests.guards", "--nbval-cell-timeout=6", more=LATE)
    assert f"{len(BAD) + 1} failed, {len(GOOD)} passed, 1 xpassed" in report, report
    assert [why for why in (*BAD, "Timeout of 6 seconds exceeded executing cell") if why not in report] == []
    assert [left.name for left in tmp_path.iterdir()] == ["book.ipynb"]  # it ran in a folder of its own


@pytest.mark.processes
def test_without_the_guards_lax_lets_them_all_pass(tmp_path):
    """Under coverage too, where a peer's notebooks did not run at all."""
    report = run(tmp_path, by=("-m", "coverage", "run", f"--data-file={tmp_path / 'seen'}"))
    assert (tmp_path / "seen").exists()
    assert f"{len(GOOD) + len(BAD) - 1} passed, 1 skipped" in report, report
