"""A saved cell is a script: what a cell finds stands above it, the value of its last line is printed below it."""

import ast
import contextlib
import io

import pytest

from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.comm.group import Cell
from lt_core.magics.options import Options
from lt_core.magics.script import MADE, save, script


def text(body, given=(), **options):
    return script(Cell(body, given=dict(given), first_line=2), Options()._replace(**options))


def test_a_script():
    assert (
        text("x = torch.ones(2) * rank\ncomm.all_reduce(x)\nx", backend="gloo", timeout_s=5)
        == """\
import torch

import lt_core as lt

comm = lt.world(backend="gloo", timeout_s=5)
rank = comm.rank

x = torch.ones(2) * rank
comm.all_reduce(x)
value = (x)
if value is not None:
    print(f"rank {rank} -> {value!r}")
"""
    )


def run(body):
    """What the cell's own part of its script prints on rank 3."""
    code = text(body).partition("rank = comm.rank\n")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code[2], {"rank": 3})
    return out.getvalue()


@pytest.mark.parametrize(
    ("body", "printed"),
    [
        ("1 + 1", "rank 3 -> 2\n"),
        ("x = 1; x  # the last", "rank 3 -> 1\n"),
        ("(1 +\n 2)\n", "rank 3 -> 3\n"),
        ("(1,\n 2), 3", "rank 3 -> ((1, 2), 3)\n"),
        ("x = [\n]\nx.append(\n    rank\n) or x\n\n# end\n", "rank 3 -> [3]\n"),
        ("größe = 'Ω'; größe + 'ö'", "rank 3 -> 'Ωö'\n"),
        ("None", ""),
        ("1 + 1;", ""),
        ("x = 1", ""),
        ("print('one')", "one\n"),
        ("def f():\n    return 1\nf()", "rank 3 -> 1\n"),
        ("y = 'a\x0cb'\r\ny", "rank 3 -> 'a\\x0cb'\n"),
        ("", ""),
        ("# nothing", ""),
    ],
)
def test_the_last_value_is_printed_once_evaluated_once(body, printed):
    assert run(body) == printed


def test_imports_from_the_future_come_first():
    body = '"""A cell."""\nfrom __future__ import annotations\n\ndef f(x: no_such): ...\nf.__annotations__["x"]\n'
    lines = text(body).splitlines()
    assert lines[:3] == ['"""A cell."""', "from __future__ import annotations", "import torch"]
    compile(text(body), "script", "exec")


def test_what_in_copies_is_made_in_the_script():
    made = text("print(k * name)", {"k": 3, "name": "it's"})
    assert made.endswith('\n\nk = 3\nname = "it\'s"\nprint(k * name)')


def test_ranks_that_do_not_run_the_cell_leave():
    assert "if rank not in (0, 2):\n    raise SystemExit\n" in text("pass", ranks=(0, 2))


def test_a_shaped_wire_is_shaped_in_the_script():
    wire = Wire("shaped", 1e-4, 125e6)
    made = text("pass", shape=wire)
    assert "from lt_core.comm.shaped import shaped" in made and f"comm = shaped(comm, {wire!r})" in made
    compile(made, "script", "exec")


def test_a_cell_with_a_syntax_error_is_not_saved(tmp_path):
    with pytest.raises(SyntaxError) as caught:
        save(tmp_path / "ring.py", Cell("x = (", "<cell 4>", first_line=2), Options(), 4)
    assert (caught.value.filename, caught.value.lineno, caught.value.text) == ("<cell 4>", 2, "x = (\n")
    assert not (tmp_path / "ring.py").exists()


def test_the_file_says_how_it_runs(tmp_path):
    path = tmp_path / "my ring.py"
    said = save(path, Cell("größe = 1"), Options(), 4)
    command = f"torchrun --standalone --nproc-per-node 4 '{path}'"
    assert said == f"saved {path}; it runs with:\n  {command}"
    written = path.read_text(encoding="utf-8")
    assert written.startswith(f"{MADE}{command}\n") and ast.parse(written)
    assert save(path, Cell("x = 2"), Options(), 2) and "größe" not in path.read_text(encoding="utf-8")


def test_another_file_of_that_name_stays(tmp_path):
    path = tmp_path / "ring.py"
    path.write_text("mine")
    with pytest.raises(UserError, match="that file is there, and no cell wrote it; try: another name"):
        save(path, Cell("x = 1"), Options(), 4)
    assert path.read_text() == "mine"


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UserError, match="was not written; got No such file or directory; try: another folder"):
        save(tmp_path / "no" / "ring.py", Cell("x = 1"), Options(), 4)
