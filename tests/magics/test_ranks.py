"""The whole way, on two real ranks that stay from one test to the next: what a cell does and what it shows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from lt_core.base.errors import RankError, UserError
from lt_core.comm import host
from lt_core.comm.shared_memory import names
from lt_core.magics.errors import CellSyntaxError
from tests.sharing import ROOM_BYTES

pytestmark = pytest.mark.processes


@pytest.fixture
def shows(real, capsys):
    """Run a cell; give the lines it shows."""

    def run(cell):
        capsys.readouterr()
        real.run(cell)
        return capsys.readouterr().out.splitlines()

    return run


def test_four_names_and_nothing_else(shows):
    cell = "%%torchrun -n 2\nsorted(name for name in globals() if not name.startswith('__'))"
    assert shows(cell) == ["ranks 0-1 -> ['comm', 'lt', 'rank', 'torch']"]


def test_values_by_rank(shows):
    assert shows("%%torchrun\nrank, comm.size, lt.__name__") == [
        "rank 0 -> (0, 2, 'lt_core')",
        "rank 1 -> (1, 2, 'lt_core')",
    ]


def test_ranks_keep_their_variables(shows):
    assert shows("%%torchrun -n 2\nx = torch.arange(3.) * (rank + 1)\ncomm.all_reduce(x)") == []
    assert shows("%%torchrun -n 2\nx") == ["ranks 0-1 -> tensor([0., 3., 6.])"]


def test_output_by_rank_stderr_too(shows):
    cell = "%%torchrun\nimport sys\nprint('all')\nprint(rank)\nprint('careful', file=sys.stderr)"
    assert sorted(shows(cell)) == ["rank 0: 0", "rank 1: 1", "ranks 0-1 stderr: careful", "ranks 0-1: all"]


def test_every_line_comes_once_before_the_errors(shows, real, capsys):
    cell = "%%torchrun\nprint('line', rank)\nimport sys; sys.stdout.write('no end'); raise ValueError(f'boom {rank}')"
    with pytest.raises(RankError, match=r"rank [01] failed first: ValueError: boom [01]"):
        real.run(cell)
    shown = capsys.readouterr().out.splitlines()
    assert [shown.count(line) for line in ("rank 0: line 0", "rank 1: line 1", "ranks 0-1: no end")] == [1, 1, 1]
    assert max(map(shown.index, ("rank 0: line 0", "rank 1: line 1", "ranks 0-1: no end"))) < next(
        at for at, line in enumerate(shown) if line.startswith("RankError: ")
    )


def test_only_some_ranks(shows):
    assert shows("%%torchrun --ranks 1\nrank") == ["rank 1 -> 1"]


def test_the_first_culprit_its_line_and_what_followed(real, capsys):
    with pytest.raises(RankError) as caught:
        real.run("%%torchrun\nx = 1\nif rank == 1:\n    raise ValueError('boom-ü')\ncomm.barrier()")
    assert (caught.value.rank, caught.value.kind, caught.value.message) == (1, "ValueError", "boom-ü")
    shown = capsys.readouterr().out
    assert shown.startswith(
        "RankError: rank 1 failed first: ValueError: boom-ü\nline 4 of the cell: raise ValueError('boom-ü')"
    )
    assert "what followed:\n  rank 0: " in shown and "lt_core" not in shown.replace("lt_core.base.errors", "")


def test_a_function_of_an_earlier_cell_is_shown_as_it_stands_there(real, shows):
    """All cells bore one name, so a traceback showed the line of the last cell in place of the function's own."""
    real.shell.execution_count = 2
    shows("%%torchrun\ndef divide(a, b):\n    return a / b")
    real.shell.execution_count = 3
    with pytest.raises(RankError) as caught:
        real.run("%%torchrun\nx = 1\ny = divide(x, 0)")
    real.shell.execution_count = 1
    lines = str(caught.value).splitlines()
    assert lines[1] == "line 3 of the cell: y = divide(x, 0)"
    assert lines[3:7] == [
        '  File "<cell 3>", line 3, in <module>',
        "    y = divide(x, 0)",
        '  File "<cell 2>", line 3, in divide',
        "    return a / b",
    ]


def test_an_expected_error_is_one_line_and_the_next_cell_works(shows):
    cell = "%%torchrun --expect ValueError\nif rank == 0:\n    raise ValueError('boom')\ncomm.barrier()"
    assert shows(cell) == ["as expected, rank 0 failed first: ValueError: boom (line 3: raise ValueError('boom'))"]
    assert shows("%%torchrun\nx = torch.ones(1)\ncomm.all_reduce(x)\nx") == ["ranks 0-1 -> tensor([2.])"]


def test_a_mismatch_can_be_expected_and_variables_stay(shows):
    shows("%%torchrun\nkept = rank")
    (line,) = shows("%%torchrun --expect Mismatch\ncomm.all_reduce(torch.ones(2 + rank))")
    assert "Mismatch: collective" in line and "(line 2: comm.all_reduce(torch.ones(2 + rank)))" in line
    assert shows("%%torchrun\nkept") == ["rank 0 -> 0", "rank 1 -> 1"]


@pytest.mark.parametrize("option", ["", " --save {path}"])
def test_a_syntax_error_is_the_cells_own(real, capsys, tmp_path, option):
    real.names["path"] = tmp_path / "cell.py"
    with pytest.raises(CellSyntaxError, match=r"'\(' was never closed \(line 2 of the cell\)"):
        real.run(f"%%torchrun{option}\nx = (")
    assert capsys.readouterr().out.splitlines() == [
        '  File "<cell 1>", line 2', "    x = (", "        ^", "SyntaxError: '(' was never closed",
    ]  # fmt: skip


def test_a_wait_and_a_call_stand_at_the_lines_that_the_notebook_shows(real):
    cell = "%%torchrun --timeout 0.5\nimport time\n\nif rank:\n    time.sleep(60)\nelse:\n    comm.barrier()"
    with pytest.raises(RankError, match=r"rank 0 waits in barrier \(.*\), line 7 for more than 0.5 s") as caught:
        real.run(cell)
    assert "rank 1 is in no collective: time.sleep at line 5" in caught.value.details


def test_a_functions_source_is_found_below_the_magics_line(shows):
    text = "def twice(x):\n    return 2 * x\n"
    assert shows(f"%%torchrun\nimport inspect\n{text}inspect.getsource(twice)") == [f"ranks 0-1 -> {text!r}"]


def test_in_and_out(real, shows):
    real.run(
        "import torch\ndef scaled(x, by=lambda x: 3 * x): return by(x)\nw = torch.ones(2)\nclass Box:\n    size = 7"
    )
    assert shows("%%torchrun --in scaled,w,Box --out y\ny = scaled(w) + rank + Box.size") == []
    assert all(torch.equal(y, torch.full((2,), 10.0 + rank)) for rank, y in enumerate(real.names["y"]))


def test_a_name_of_the_notebook_that_ranks_lack_can_be_brought_as_it_says(real, shows):
    real.run("eight_sent = [8]")
    with pytest.raises(RankError, match=r"NameError: name 'eight_sent' is not defined; .*; try: --in eight_sent\n"):
        real.run("%%torchrun\nprint(eight_sent)")
    assert shows("%%torchrun --in eight_sent\neight_sent") == ["ranks 0-1 -> [8]"]


def test_what_cannot_be_copied_is_named(real):
    real.run("import threading; lock = threading.Lock()")
    with pytest.raises(UserError, match=r"--in lock cannot be sent to another process \(.*\); got a _thread.lock"):
        real.run("%%torchrun --in lock\npass")
    with pytest.raises(RankError, match="--out lock cannot be sent"):
        real.run("%%torchrun --out lock\nimport threading; lock = threading.Lock()")
    with pytest.raises(RankError, match="--out nothing: this rank has no variable 'nothing'; expected a name"):
        real.run("%%torchrun --out nothing\npass")


def test_the_body_arrives_byte_for_byte(shows):
    body = "import linecache\ns = '''{rank} $x %d\t!ls ü 🙂\\n'''\n''.join(linecache.getlines('<cell 1>')).encode()"
    numbered = f"\n{body}"  # below the magic's line
    assert shows(f"%%torchrun\n{body}") == [f"ranks 0-1 -> {numbered.encode()!r}"]


def test_the_kernel_never_initialises_cuda(real, monkeypatch):
    def refuse():
        raise AssertionError("the kernel has initialised CUDA")

    monkeypatch.setattr(torch.cuda, "_lazy_init", refuse)
    real.run("w = torch.ones(2)")
    real.run("%%torchrun --in w --out v\ncomm.all_reduce(w)\nv = w")
    assert torch.equal(real.names["v"][0], torch.full((2,), 2.0)) and not torch.cuda.is_initialized()


def test_status_names_the_processes(real, shows):
    pids = [int(line.split()[-1]) for line in shows("%%torchrun\nimport os\nos.getpid()")]
    (line,) = shows("%torchrun status")
    assert line.startswith(f"here: 2 ranks over gloo of the kernel of process {os.getpid()}, since ")
    assert line.endswith(f"processes {pids[0]}, {pids[1]}")


SAVED = """\
from __future__ import annotations
x = torch.arange(4.) * scale(rank + 1)
comm.all_reduce(x)
print(f"sum on {rank}: {x.sum():g}")
x + rank
"""


def test_a_saved_script_gives_the_same_result(real, shows, tmp_path):
    real.run("factor = 3\ndef scale(x):\n    return factor * x")
    real.names["path"] = path = tmp_path / "cell.py"
    said, command, *shown = shows(f"%%torchrun --in scale --save {{path}}\n{SAVED}")
    torchrun, *rest = command.split()
    assert said == f"saved {path}; it runs with:" and torchrun == "torchrun" and rest[-1] == str(path)
    apart = ["--redirects", "1", "--log-dir", str(tmp_path / "log")]  # lines of two ranks on one pipe would mix
    subprocess.run([Path(sys.executable).with_name(torchrun), *apart, *rest], timeout=55, check=True)
    for rank in (0, 1):
        (log,) = tmp_path.glob(f"log/*/attempt_0/{rank}/stdout.log")
        mine = [line for line in shown if line.startswith(f"rank {rank}")]
        assert log.read_text().splitlines() == [line.removeprefix(f"rank {rank}: ") for line in mine]
        assert len(mine) == 2


def test_fresh_processes_know_nothing_of_the_warm_ones(shows):
    warm = shows("%%torchrun\nimport os\nseen = os.getpid()\nseen")
    (fresh,) = shows("%%torchrun --fresh\nimport os\n'seen' in globals(), comm.size, os.getppid()")
    assert fresh.startswith("ranks 0-1 -> (False, 2, ")
    assert shows("%%torchrun\nseen") == warm and not host.alive(int(fresh.split()[-1].rstrip(")")))


@pytest.mark.skipif(bool(names.no_room(ROOM_BYTES)), reason="too little /dev/shm")
def test_fresh_ranks_may_share_memory(shows):
    cell = "x = torch.arange(3.) * (rank + 1)\ncomm.all_reduce(x)\nx, comm.backend"
    told = "ranks 0-1 -> (tensor([0., 3., 6.]), 'shared_memory')"
    assert shows(f"%%torchrun --fresh --backend shared_memory\n{cell}") == [told]


def test_a_shaped_wire_is_as_slow_as_it_says(shows):
    cell = "import time\nbegun_s = time.monotonic()\ncomm.all_reduce(torch.ones(1))\ntime.monotonic() - begun_s >= 0.2"
    assert shows(f'%%torchrun --fresh --shape "1 Gbit/s 100 ms"\n{cell}') == ["ranks 0-1 -> True"]


def test_restart_forgets_everything(shows):
    shows("%%torchrun\nseen = 1")
    assert shows("%torchrun restart") == ["2 new ranks over gloo, without variables"]
    assert shows("%%torchrun\n'seen' in globals()") == ["ranks 0-1 -> False"]


def test_a_rank_that_dies_takes_the_state_with_it_and_the_next_cell_says_so(real, shows):
    real.run("%%torchrun\nseen = 1")
    with pytest.raises(RankError, match="rank 1 failed first: died: exit code 7"):
        real.run("%%torchrun\nimport os\nif rank == 1:\n    os._exit(7)\ncomm.barrier()")
    said, value = shows("%%torchrun\n'seen' in globals()")
    assert said == "group: a new group starts, without the variables: rank 1 died: exit code 7"
    assert value == "ranks 0-1 -> False"
