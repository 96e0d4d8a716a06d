"""A cell's text: made into code once, in the kernel, and asked what stands at a line of it."""

from __future__ import annotations

import ast
import marshal


def compiled(text: str, name: str) -> bytes:
    """The code of a cell as bytes: its statements, and its last expression unless a semicolon silences it.

    Errors: `SyntaxError`, before any rank has seen it.
    """
    try:
        tree, last = ast.parse(text, name), None
        final = tree.body[-1] if tree.body else None
        if isinstance(final, ast.Expr) and not text.rstrip().endswith(";"):
            last = compile(ast.Expression(final.value), name, "eval", dont_inherit=True)
            tree.body.pop()
        return marshal.dumps((compile(tree, name, "exec", dont_inherit=True), last))
    except SyntaxError as error:
        error.text = error.text or line_at(text, error.lineno or 0)  # Python looks for it in a file of that name
        raise


def call_at(text: str, line: int) -> str:
    """What a line of the cell calls, as `torch.linalg.svd`; else the line itself."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    here = [node for node in calls if node.lineno <= line <= (node.end_lineno or node.lineno)]
    return ast.unparse(here[0].func) if here else line_at(text, line)


def line_at(text: str, line: int) -> str:
    """A line of the cell."""
    lines = text.splitlines()
    return lines[line - 1].strip() if 1 <= line <= len(lines) else ""
