"""A lab's one source, src/NN_slug.py (py:percent): read it, blank its solutions, refuse what would stop Run All."""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import jupytext
from IPython.core.inputtransformer2 import TransformerManager
from nbformat import NotebookNode, from_dict

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
SLIDES = {"question": "slide", "predict": "slide", "see": "slide", "reveal": "fragment"}  # others are no slides
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


class LabError(ValueError):
    """A lab that cannot be built: which cell, what is wrong with it, and what to do."""


def read(path: Path) -> NotebookNode:
    """Return the source as a notebook, solutions in, its hash and its cells' ids set."""
    text = path.read_text(encoding="utf-8")
    book = jupytext.reads(text, fmt="py:percent")
    stamp = {"source": digest(text)}
    book.metadata = from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}, "lt_lab": stamp})
    seen: Counter[str] = Counter()
    for cell in book.cells:
        tags = cell.metadata.get("tags", [])
        kinds = [SLIDES[tag] for tag in tags if tag in SLIDES]
        cell.metadata = from_dict({"tags": tags, "slideshow": {"slide_type": kinds[0] if kinds else "skip"}})
        code = digest(blanked(cell))[:8]
        cell.id = f"{code}-{seen[code]}" if seen[code] else code
        seen[code] += 1
    check_calls(book)
    return book


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def blanked(cell: NotebookNode) -> str:
    """Return a cell's source as the learner gets it."""
    return blank(cell.source) if cell.cell_type == "code" else cell.source


def blank(source: str) -> str:
    """Return code with each solution replaced by `raise NotImplementedError("your turn: NAME")`."""
    lines = source.split("\n")
    for first, last in reversed(solutions(lines)):
        name = exercise(source, first, last).name
        indent = re.match(r" *", lines[first])[0]
        lines[first : last + 1] = [f'{indent}raise NotImplementedError("your turn: {name}")']
    return "\n".join(lines)


def solutions(lines: list[str]) -> list[tuple[int, int]]:
    """Return the first and last line of each solution, its markers included."""
    found: list[tuple[int, int]] = []
    begun = None
    for number, line in enumerate(lines):
        if line.strip() == BEGIN:
            if begun is not None:
                raise LabError(
                    f"line {number + 1}: {BEGIN} inside the solution begun in line {begun + 1}; end that first"
                )
            begun = number
        elif line.strip() == END:
            if begun is None:
                raise LabError(f"line {number + 1}: {END} without {BEGIN}")
            found.append((begun, number))
            begun = None
    if begun is not None:
        raise LabError(f"line {begun + 1}: {BEGIN} without {END}; the rest of the cell would be blanked")
    return found


def exercise(source: str, first: int, last: int) -> ast.FunctionDef:
    """Return the plain function that holds these lines, so that Run All passes over an unwritten exercise."""
    if source.startswith("%%"):
        raise LabError(
            f"a solution in a cell of {source.split()[0]}: write it in a kernel cell and hand the function over"
        )
    lines = source.split("\n")
    code = [number for number in range(first + 1, last) if lines[number].strip()] or [first]
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    around = [node for node in functions if node.lineno <= first and code[-1] < node.end_lineno]
    if not around:
        raise LabError(
            f"line {first + 1}: a solution outside of a plain function; put it in one, so that Run All ends well"
        )
    return max(around, key=lambda node: node.lineno)


def check_calls(book: NotebookNode) -> None:
    """Refuse top-level code that calls an exercise: unwritten, it would stop Run All. `check` is handed it instead."""
    unwritten = exercises(book)
    for cell in book.cells:
        if cell.cell_type == "code":
            for name in called_early(cell.source, unwritten):
                raise LabError(called_too_early(name))


def exercises(book: NotebookNode) -> set[str]:
    """Return the names of the functions that a learner writes, in a source as in the learner's notebook."""
    sources = [cell.source for cell in book.cells if cell.cell_type == "code"]
    marked = {exercise(source, *span).name for source in sources for span in solutions(source.split("\n"))}
    return marked.union(*(re.findall(r'raise NotImplementedError\("your turn: (\w+)"\)', source) for source in sources))


def called_early(source: str, names: set[str]) -> list[str]:
    """Return which of these functions a cell calls when it runs; one that is no Python calls nothing."""
    code = TransformerManager().transform_cell(re.sub(r"\A%%.*\n", "", source))
    try:
        return sorted(names & set(called(ast.parse(code))))
    except SyntaxError:
        return []


def called_too_early(name: str) -> str:
    return f"{name} is an exercise, but a cell calls it: unwritten, it stops Run All; hand it to check"


def called(node: ast.AST) -> Iterator[str]:
    """Yield the names that code calls when it runs, not those that its functions would call later."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call) and isinstance(child.func, ast.Name):
            yield child.func.id
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from called(child)
