"""make teacher: one archive for who teaches: solutions, notes, exercises, sources, and assignments for nbgrader.

    teacher/README.md                            the table of labs, and how to read and make one
    teacher/NOTES.md                             of each lab: notes for the class, exercises, their solutions, hints
    teacher/NN_slug.ipynb, tour.ipynb            the learners' notebooks
    teacher/solutions/NN_slug.ipynb              executed, with the cells for teachers
    teacher/src/NN_slug.py                       the source of both notebooks
    teacher/nbgrader/source/NN_slug/NN_slug.ipynb

Two runs give the same bytes: no times, no compression, sorted names.
"""

import ast
import copy
import io
import re
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode, from_dict

from labs.build import LABS, is_fresh
from labs.source import BEGIN, LabError, exercise, read, solutions
from lt_core.teaching.checks import EXERCISES
from lt_core.teaching.grading.cells import handed_over, parsed
from lt_core.teaching.hint import all_ladders

THEN = (1980, 1, 1, 0, 0, 0)  # the first moment that a zip file knows
MODE = 0o644 << 16


def main(arguments: list[str]) -> int:
    """Write the archive to teacher.zip, or where it is told, and return the exit code."""
    path = Path(arguments[0]) if arguments else LABS.parent / "teacher.zip"
    try:
        files = dict(contents(LABS))
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    path.write_bytes(archive(files))
    print(f"{path}: {len(files)} files, {path.stat().st_size / 1000:,.0f} kB. It holds the solutions: not for learners")
    return 0


def archive(files: dict[str, str]) -> bytes:
    """Return a zip file of these texts by name: the same bytes on every machine and day."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as packed:
        for name, text in sorted(files.items()):
            entry = zipfile.ZipInfo(f"teacher/{name}", THEN)
            entry.create_system, entry.external_attr = 3, MODE
            packed.writestr(entry, text.encode())
    return out.getvalue()


def contents(labs: Path) -> Iterator[tuple[str, str]]:
    """Yield each file's name and text. Errors: a lab whose notebooks are older than its source."""
    sources = sorted((labs / "src").glob("[0-9]*.py"))
    old = [source.stem for source in sources if not is_fresh(source, labs)]
    if old or not sources:
        raise LabError(f"not built from their sources: {', '.join(old) or 'no lab is there'}; make labs")
    yield "README.md", (labs / "README.md").read_text(encoding="utf-8")
    read_ = {source.stem: read(source) for source in sources}
    yield "NOTES.md", "\n".join(["# For teachers", *(notes(book) for book in read_.values())])
    for book in sorted([*labs.glob("*.ipynb"), *labs.glob("solutions/*.ipynb")]):
        yield book.relative_to(labs).as_posix(), book.read_text(encoding="utf-8")
    for source in sources:
        yield f"src/{source.name}", source.read_text(encoding="utf-8")
        assigned = nbformat.writes(assignment(read_[source.stem]))
        yield f"nbgrader/source/{source.stem}/{source.stem}.ipynb", f"{assigned}\n"


def notes(book: NotebookNode) -> str:
    """Return what a teacher reads of a lab: its notes, and each exercise with what is asked, a solution, and hints."""
    title = book.cells[0].source.split("\n")[0].removeprefix("# ")
    told = [
        f"\n```python\n{cell.source}\n```"
        if cell.cell_type == "code"
        else re.sub(r"</?details>|<summary>.*?</summary>", "", cell.source).strip()
        for cell in book.cells
        if "teacher" in cell.metadata.get("tags", [])
    ]
    written = {function: code for cell in book.cells for function, code in solved(cell)}
    parts = [f"\n## {title}\n", *told]
    for one, function in {one: ast.unparse(fn) for cell in book.cells for one, fn in checks(cell)}.items():
        asked = "\n".join(f"- {prop.name}" for prop in EXERCISES[one].properties)
        ladder = all_ladders().get(one)
        hints = [f"{number}. {rung}" for number, rung in enumerate(ladder.rungs, 1)] if ladder else []
        code = f"\n```python\n{written[function]}\n```\n" if function in written else ""
        parts += [f"\n### {one}: `{EXERCISES[one].face}`\n", asked, code, *hints]
    return "\n".join(parts)


def assignment(book: NotebookNode) -> NotebookNode:
    """Return a lab as nbgrader takes it: solutions between its markers, and checks that are locked and give a point."""
    made = copy.deepcopy(book)
    made.cells = [cell for cell in made.cells if "teacher" not in cell.metadata.get("tags", [])]
    for cell in made.cells:
        names = [name for name, _ in checks(cell)]
        if names:
            cell.source = with_hidden_tests(cell.source)
            graded(cell, grade=True, solution=False, locked=True, points=len(names))
        elif BEGIN in cell.source:
            graded(cell, grade=False, solution=True, locked=False)
    return made


def with_hidden_tests(source: str) -> str:
    """Return a cell whose checks must pass: nbgrader shows learners the checks, and keeps the demand to itself."""
    lines, passed = source.split("\n"), []
    for number, node in enumerate(node for node in ast.parse(source).body if any(handed_over([node]))):
        lines[node.lineno - 1] = f"checked_{number} = {lines[node.lineno - 1]}"
        passed.append(f"assert checked_{number}.passed")
    return "\n".join([*lines, "### BEGIN HIDDEN TESTS", *passed, "### END HIDDEN TESTS"])


def graded(cell: NotebookNode, **what: bool | int) -> None:
    """Write nbgrader's words of a cell into it."""
    cell.metadata["nbgrader"] = from_dict({"schema_version": 3, "grade_id": f"cell-{cell.id}", "task": False, **what})


def checks(cell: NotebookNode) -> list[tuple[str, ast.expr]]:
    """Return (exercise, what is handed over) for each check which a cell makes at its top level."""
    if cell.cell_type != "code" or cell.source.startswith("%%"):
        return []
    calls = [node for node in parsed(cell.source) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    return [(name, fn) for name, fn in handed_over(calls) if name in EXERCISES]


def solved(cell: NotebookNode) -> Iterator[tuple[str, str]]:
    """Yield the name of each function that a cell leaves to the learner, and the cell with the solution in."""
    if cell.cell_type == "code":
        for first, last in solutions(cell.source.split("\n")):
            lines = [line for line in cell.source.split("\n") if " SOLUTION" not in line]
            yield exercise(cell.source, first, last).name, "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
