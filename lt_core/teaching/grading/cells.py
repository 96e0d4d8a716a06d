"""Of all the code in a notebook, only what one exercise needs: its function, and whatever that names, in order.

The rest is not run: no ranks are started, nothing is printed, and a cell that does not work harms its own names alone.
What is needed is read from the compiled code; what changes a name without binding it (`table.append(3)`) is not seen.
"""

from __future__ import annotations

import ast
import builtins
import dis
import json
import linecache
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

LOADS = {"LOAD_NAME", "LOAD_GLOBAL"}
IN_THE_KERNEL = re.compile(r"\A%%(time|capture)\b.*\n")  # cell magics whose body binds names like any other cell


class Statement(NamedTuple):
    """One statement of a cell's top level: its code, the names it needs, the names it binds."""

    code: CodeType
    needs: frozenset[str]
    binds: frozenset[str]
    always: bool  # it binds names that only running it can tell


class Unread(NamedTuple):
    """A cell that is no Python: why, and its text."""

    why: str
    source: str


class Code(NamedTuple):
    """A notebook's statements in order; what is handed to `check`, by exercise; cells that are no Python."""

    statements: tuple[Statement, ...]
    checked: dict[str, ast.expr]
    unread: tuple[Unread, ...]


def read(notebook: Path) -> Code:
    """The code of a notebook. Errors: ValueError where it is none."""
    statements: list[Statement] = []
    checked: dict[str, ast.expr] = {}
    unread: list[Unread] = []
    for name, source in sources(notebook):
        try:
            body = parsed(source)
            statements += [_statement(node, name) for node in body]
            checked |= dict(handed_over(body))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
            unread.append(Unread(f"{name}{line}: {getattr(error, 'msg', error)}", source))
    return Code(tuple(statements), checked, tuple(unread))


def sources(notebook: Path) -> Iterator[tuple[str, str]]:
    """(name, code) of each cell that runs in the kernel; its lines are known to tracebacks under that name."""
    try:
        cells = json.loads(notebook.read_bytes())["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"it is no notebook: {type(error).__name__}: {error}") from error
    for number, text in enumerate(texts, 1):
        source = IN_THE_KERNEL.sub("\n", text)
        if not source.startswith("%%"):
            name = f"code cell {number}"
            linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
            yield name, source


def parsed(source: str) -> list[ast.stmt]:
    """A cell's statements; lines that only IPython knows are its calls. Errors: SyntaxError."""
    try:
        return ast.parse(source).body
    except SyntaxError:
        from IPython.core.inputtransformer2 import TransformerManager

        return ast.parse(TransformerManager().transform_cell(source)).body  # type: ignore[no-untyped-call]


def handed_over(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """(exercise, expression) of each call `check("20.all_reduce", expression)`."""
    for node in (found for statement in body for found in ast.walk(statement)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == "check" and len(node.args) == 2:
            first, second = node.args
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value, second


def names(answer: ast.expr) -> set[str]:
    """The names that an expression itself loads."""
    return set(_loaded(compile(ast.Expression(answer), "", "eval")))


def needed(code: Code, answer: ast.expr) -> tuple[list[Statement], set[str]]:
    """The statements which an expression needs, in order, and the names that nothing binds."""
    kept: set[int] = {k for k, one in enumerate(code.statements) if one.always}
    wanted = names(answer)
    while True:
        more = {k for k, one in enumerate(code.statements) if one.binds & wanted}
        named = wanted.union(*(code.statements[k].needs for k in kept | more))
        if more <= kept and named == wanted:
            break
        kept, wanted = kept | more, named
    used = [code.statements[k] for k in sorted(kept)]
    bound = set().union(*(one.binds for one in used)) | set(dir(builtins))
    return used, set() if any(one.always for one in used) else wanted - bound


def value(used: Iterable[Statement], answer: ast.expr) -> Any:
    """What an expression is after these statements. Errors: whatever they raise."""
    bound: dict[str, Any] = {"__name__": "__main__"}
    for one in used:
        exec(one.code, bound)
    return eval(compile(ast.Expression(answer), "what is checked", "eval"), bound)


def _statement(node: ast.stmt, name: str) -> Statement:
    code = compile(ast.Module([node], []), name, "exec")
    star = isinstance(node, ast.ImportFrom) and any(one.name == "*" for one in node.names)
    return Statement(code, frozenset(_loaded(code)), frozenset(_bound(code)), star)


def _loaded(code: CodeType) -> Iterator[str]:
    for one in _nested(code):
        yield from (i.argval for i in dis.get_instructions(one) if i.opname in LOADS)


def _bound(code: CodeType) -> Iterator[str]:
    for one in _nested(code):
        stores = {"STORE_GLOBAL", "STORE_NAME"} if one is code else {"STORE_GLOBAL"}
        yield from (i.argval for i in dis.get_instructions(one) if i.opname in stores)


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)
