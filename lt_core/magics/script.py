"""A cell as a script: what it finds is made in a few lines above it, what it shows is printed below it.

%%torchrun -n 4 --save ring.py    ->    torchrun --standalone --nproc-per-node 4 ring.py
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Mapping
from pathlib import Path

from lt_core.base.errors import UserError
from lt_core.comm.group import Cell
from lt_core.magics.options import Options
from lt_core.magics.source import sources

MADE = "# Written by %%torchrun --save; it runs with: "
SHOW = """
if value is not None:
    print(f"rank {rank} -> {value!r}")
"""


def save(path: Path, cell: Cell, options: Options, size: int) -> str:
    """Write the script; gives the sentence that says how it runs. Errors: `UserError` for another's file."""
    command = f"torchrun --standalone --nproc-per-node {size} {shlex.quote(str(path))}"
    text = f"{MADE}{command}\n{script(cell, options)}"
    try:
        if path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(MADE):
            raise UserError(f"--save {path}: that file is there, and no cell wrote it", attempt="another name")
        path.write_bytes(text.encode())
    except OSError as error:
        raise UserError(f"--save {path} was not written", error.strerror or error, attempt="another folder") from error
    return f"saved {path}; it runs with:\n  {command}"


def script(cell: Cell, options: Options) -> str:
    """The cell with what it finds in front of it. Errors: `SyntaxError`; `UserError` for what cannot be written."""
    body, lines = cell.text, cell.text.encode().splitlines(keepends=True)
    tree = ast.increment_lineno(ast.parse(cell.numbered, cell.name), 1 - cell.first_line)
    head = max((node.end_lineno or 0 for node in tree.body if _of_the_future(node)), default=0)
    last = tree.body[-1] if tree.body else None
    shows = isinstance(last, ast.Expr) and not body.rstrip().endswith(";") and not _prints(last)
    if shows:
        assert last
        lines = _assigned(lines, last)
    future, rest = (b"".join(part).decode() for part in (lines[:head], lines[head:]))
    return f"{future}{_prologue(options, cell.given)}\n{rest}{SHOW if shows else ''}"


def _prologue(options: Options, given: Mapping[str, object]) -> str:
    imports, made = ["import torch", "", "import lt_core as lt"], []
    if options.shape:
        imports += ["from lt_core.base.cluster import Wire", "from lt_core.comm.shaped import shaped"]
        made += [f"comm = shaped(comm, {options.shape!r})"]
    made += ["rank = comm.rank"]
    if options.ranks:
        made += [f"if rank not in {options.ranks}:", "    raise SystemExit"]
    world = f'comm = lt.world(backend="{options.backend}", timeout_s={options.timeout_s:g})'
    return "\n".join([*imports, "", world, *made, "", *sources(given)])


def _of_the_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def _prints(last: ast.Expr) -> bool:
    return isinstance(last.value, ast.Call) and isinstance(last.value.func, ast.Name) and last.value.func.id == "print"


def _assigned(lines: list[bytes], last: ast.stmt) -> list[bytes]:
    """The last expression, given a name so that it is evaluated once and can be printed."""
    end, start = (last.end_lineno or 0) - 1, last.lineno - 1
    lines = list(lines)
    for at, place, sign in ((end, last.end_col_offset or 0, b")"), (start, last.col_offset, b"value = (")):
        lines[at] = lines[at][:place] + sign + lines[at][place:]
    return lines
