"""Whatever a notebook does, its exercise gets a grade, the next one too, and nothing is left of it."""

import json
import os
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from lt_core.comm import folders
from lt_core.teaching.grading import alone, graded
from lt_core.teaching.grading.graded import grade
from lt_core.teaching.grading.watch import Limits
from tests.teaching.grading.books import HELPER, IMPORTS, RIGHT, write

TICKS = "def check(*a):\n    print('20.reduce_scatter: passed, all 11 properties hold.')\ncheck('x', 3)"
TRIES = """import os, socket, subprocess
def tried(what, *arguments):
    try:
        what(*arguments)
    except Exception:
        pass
"""
CURIOUS = RIGHT.replace("\n", "\n    tried(socket.create_connection, ('example.org', 80))\n", 1)
LEAVES = """import os, sys
def reduce_scatter(comm, x):
    print('so long', file=sys.stderr, flush=True)
    os._exit(0)
"""
SWELLS = """n = []
while True:
    n += [b"1" * (1 << 24)]
"""
RETURNS_N = "def reduce_scatter(comm, x):\n    return n"
BOMB = """import ctypes, time
def reduce_scatter(comm, x):
    libc = ctypes.CDLL(None)
    if not all(libc.fork() for _ in range(40)):
        time.sleep(600)
    time.sleep(600)
"""
SMALL = Limits(seconds=40, printed_bytes=1_000_000, processes=20, memory_bytes=3 << 30)
NOTEBOOKS = {
    "right, and curious": (
        [IMPORTS, HELPER, TRIES, TICKS, CURIOUS],
        SMALL,
        ("passed", 11, "tried: network, example.org"),
    ),
    "wrong, with ticks": (
        [IMPORTS, TRIES, TICKS, "def reduce_scatter(comm, x):\n    tried(os.fork)\n    tried(subprocess.run, ['ls'])\n"
         "    tried(os.kill, os.getppid(), 9)\n    print('passed')\n    return x"],
        SMALL,
        ("not passed", 4, "values: 12 elements on 2 ranks: .* tried: os.fork, a process | tried: subprocess.Popen, a "
         "process | tried: os.kill, a signal"),
    ),
    "leaves": (
        [LEAVES],
        SMALL,
        ("died", 0, "its process ended with code 0 before it had answered: so long"),
    ),
    "never ends": (
        ["while True:\n    n = 3", RETURNS_N],
        SMALL._replace(seconds=6),
        ("stopped", 0, "it took more than 6 s"),
    ),
    "forks": ([BOMB], SMALL, ("stopped", 0, r"it started \d+ processes, at most 20")),
    "floods": (
        ["import os\nwhile True:\n    n = os.write(1, bytes(65536))", RETURNS_N],
        SMALL,
        ("stopped", 0, "it printed more than 1 MB"),
    ),
    "swells": (
        [SWELLS, RETURNS_N],
        SMALL._replace(memory_bytes=1 << 30),
        ("stopped", 0, r"it took 1.* of memory, at most .*"),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def grades():
    """The grade of each notebook, its file, and what was left in the folder of runs: two are graded at a time."""
    with tempfile.TemporaryDirectory(prefix="lt-", dir="/tmp") as place, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", place)
        (folders.root() / "left").mkdir()  # by a grader that was killed

        def one(name):
            cells, limits, _ = NOTEBOOKS[name]
            path = write(Path(place) / name / "20_x.ipynb", *cells)
            variables = {key: os.environ[key] for key in ("PATH", "PYTHONPATH") if key in os.environ}
            return grade(path, "20.reduce_scatter", 7, name.startswith("right"), limits, variables)

        with ThreadPoolExecutor(2) as pool:
            found = dict(zip(NOTEBOOKS, pool.map(one, NOTEBOOKS), strict=True))
        yield found, place, list(folders.root().iterdir())


@pytest.mark.processes
@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_its_grade(grades, name):
    verdict, holding, remark = NOTEBOOKS[name][2]
    found = grades[0][name]
    assert (found.verdict, found.holding) == (verdict, holding), found
    assert found.of == (11 if name.startswith("right") else 10)
    assert re.fullmatch(remark.replace(" | ", r" \| "), found.remark), found.remark


@pytest.mark.processes
@pytest.mark.timeout(240)
def test_nothing_is_left(grades):
    _, place, left = grades
    assert left == []
    words = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert [line for line in words if place in line] == []


@pytest.fixture
def verdict(tmp_path):
    """What `alone` says of cells, here and on threads, without its guard: for what harms nobody."""

    def of(*cells):
        guard = SimpleNamespace(tried=[])
        return alone.graded(write(tmp_path / "x.ipynb", *cells), "20.reduce_scatter", 7, False, guard)

    return of


def test_a_right_one_whatever_its_name(verdict):
    found = verdict(IMPORTS, HELPER, RIGHT.replace("reduce_scatter", "mine"), "check('20.reduce_scatter', mine)")
    assert found["verdict"] == "passed" and {holds for _, holds, _ in found["lines"]} == {True}


@pytest.mark.parametrize(
    ("cells", "says", "remark"),
    [
        ([], "missing", "no cell binds reduce_scatter"),
        (["def reduce_scatter(comm, x):\n    return nobody(x)"], "not passed", ""),
        ([RIGHT, "def passed(:\n    pass"], "not passed", "code cell 2, line 1: invalid syntax"),
        (["", "def reduce_scatter(comm, x):\n    return x y"], "syntax error", "code cell 2, line 2: invalid syntax"),
        (
            ["raise SystemExit", "n = {}['no']", RETURNS_N],
            "error",
            "KeyError: 'no' (your line 1: n = {}['no'])",
        ),
        (["import sys\nn = sys.exit(3)", RETURNS_N], "error", "SystemExit: 3 (your line 2"),
        (["def reduce_scatter(comm, x):\n    raise NotImplementedError('your turn: reduce_scatter')"], "not yet", ""),
        (["reduce_scatter = 3"], "not passed", ""),
    ],
)  # fmt: skip
def test_what_comes_before_a_check(verdict, cells, says, remark):
    found = verdict(*cells)
    assert found["verdict"] == says and found.get("remark", "").startswith(remark)


def test_what_is_no_notebook(tmp_path):
    found = alone.graded(tmp_path / "none.ipynb", "20.reduce_scatter", 7, False, SimpleNamespace(tried=[]))
    assert found["verdict"] == "unreadable" and "none.ipynb" in found["remark"]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[",
        "3",
        "{}",
        '{"verdict": 3}',
        '{"verdict": "passed", "lines": [1]}',
        '{"verdict": "x", "lines": [[1, 5, ""]]}',
    ],
)
def test_an_answer_of_another_shape_is_none(tmp_path, answer):
    (tmp_path / "answer.json").write_text(answer)
    assert graded._answer(tmp_path / "answer.json") == {} == graded._answer(tmp_path / "nowhere")


def test_an_answer_too_long_is_none(tmp_path):
    (tmp_path / "answer.json").write_text(json.dumps({"verdict": "x" * graded.LONGEST_BYTES}))
    assert graded._answer(tmp_path / "answer.json") == {}
