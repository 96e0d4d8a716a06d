"""A cell's text: made into code once, in the kernel, and asked what stands at a line of it."""

from __future__ import annotations

import ast
import marshal
from types import CodeType


def compiled(text: str, name: str) -> bytes:
    """The code of a cell as bytes: its statements, and its last expression unless a semicolon silences it.

    Errors: `SyntaxError`, before any rank has seen it.
    """
    try:
        return marshal.dumps(_by_line(text, name) or _by_tree(text, name))
    except SyntaxError as error:
        error.text = error.text or line_at(text, error.lineno or 0)  # Python looks for it in a file of that name
        raise


def _by_line(text: str, name: str) -> tuple[CodeType, CodeType] | None:
    """The parts of a usual cell, whose last line is the last expression: without a tree, which is most of the work.

    A line that begins at the margin behind whole statements is a statement of its own.
    """
    head, _, line = text.rstrip("\n").rpartition("\n")
    if line[:1].isspace() or "\r" in text or text.rstrip().endswith(";"):
        return None
    try:
        last = compile("\n" * text.rstrip("\n").count("\n") + line, name, "eval", dont_inherit=True)
        return compile(f"{head}\n", name, "exec", dont_inherit=True), last
    except SyntaxError:
        return None


def _by_tree(text: str, name: str) -> tuple[CodeType, CodeType | None]:
    tree, last = ast.parse(text, name), None
    final = tree.body[-1] if tree.body else None
    if isinstance(final, ast.Expr) and not text.rstrip().endswith(";"):
        last = compile(ast.Expression(final.value), name, "eval", dont_inherit=True)
        tree.body.pop()
    return compile(tree, name, "exec", dont_inherit=True), last


def call_at(text: str, line: int) -> str:
    """What a line of the cell calls, as `torch.linalg.svd`; else the line itself."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    here = [node for node in calls if node.lineno <= line <= (node.end_lineno or node.lineno)]
    return ast.unparse(here[0].func) if here else line_at(text, line)


def line_at(text: str, line: int) -> str:
    """A line of the cell."""
    lines = text.splitlines()
    return lines[line - 1].strip() if 1 <= line <= len(lines) else ""
