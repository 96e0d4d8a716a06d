"""What a built pair of notebooks must be; held when it is built, and by the tests on what is committed."""

import base64
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from labs.source import blanked, digest

LIMIT_BYTES, PICTURE_BYTES = 400_000, 60_000
WIDTH = 71  # characters: more scroll sideways
SHOWN = {"run", "see", "explore"}
CHANGING = [r"\bat 0x[0-9a-f]{6,}", r"\b(?:pids?|[Pp]rocess(?:es)?|[Pp]ort) \d{3,}", r"\b[0-9a-f]{32}\b"]
LIVE = {
    "application/vnd.jupyter.widget-view+json": "a widget, which shows nothing without its kernel",
    "application/vnd.plotly.v1+json": "a plotly figure, which many readers cannot draw: store a picture of it",
}


def codes(book: NotebookNode) -> list[str]:
    """Return the hash of each code cell as the learner gets it: source, learner's and solution agree in these."""
    cells = [cell for cell in book.cells if "teacher" not in cell.metadata.get("tags", [])]
    return [digest(blanked(cell)) for cell in cells if cell.cell_type == "code"]


def learner_faults(book: NotebookNode) -> Iterator[str]:
    """Yield what is wrong with a learner's notebook."""
    yield from size_faults(book)
    for number, cell in enumerate(book.cells):
        yield from (f"cell {number}: {fault}" for fault in source_faults(cell) if cell.cell_type == "code")
        if "teacher" in cell.metadata.get("tags", []):
            yield f"cell {number} is for teachers"
        if cell.get("outputs") or cell.get("execution_count"):
            yield f"cell {number} was executed: learners get it fresh"
        if "SOLUTION" in cell.source:
            yield f"cell {number} holds a solution or its marker"


def solution_faults(book: NotebookNode) -> Iterator[str]:
    """Yield what is wrong with a solution notebook."""
    yield from size_faults(book)
    if "widgets" in book.metadata:
        yield "widget state is stored: one figure's makes 5 MB"
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    if [cell.execution_count for cell in cells] != list(range(1, len(cells) + 1)):
        yield "the execution counts are not 1, 2, 3, ..."
    for number, cell in enumerate(cells, 1):
        yield from (f"code cell {number}: {fault}" for fault in (*source_faults(cell), *cell_faults(cell)))


def source_faults(cell: NotebookNode) -> Iterator[str]:
    """Yield what is wrong with a code cell as it is read."""
    for number, line in enumerate(cell.source.split("\n"), 1):
        if len(line) > WIDTH:
            yield f"line {number} has {len(line)} characters, at most {WIDTH} do not scroll sideways"


def cell_faults(cell: NotebookNode) -> Iterator[str]:
    tags = set(cell.metadata.get("tags", []))
    if tags & SHOWN and not cell.outputs:
        yield f"tagged {' '.join(sorted(tags & SHOWN))}, but it shows nothing"
    raised = any(output.output_type == "error" for output in cell.outputs)
    if raised != ("raises-exception" in tags):
        yield (
            "it raised, but is not tagged raises-exception"
            if raised
            else "tagged raises-exception, but it did not raise"
        )
    for output in cell.outputs:
        pictures = {kind for kind in output.get("data", {}) if kind.startswith("image/")}
        if pictures and not all(output.metadata.get(kind, {}).get("alt") for kind in pictures):
            yield "a picture without alt text"
        yield from kind_faults(output)
        for found in re.findall(private(), text(output)):
            yield f"its output names {found}, which differs from machine to machine or run to run"


def kind_faults(output: NotebookNode) -> Iterator[str]:
    """Yield what is wrong with the kinds of data that an output stores."""
    for kind, data in output.get("data", {}).items():
        if kind in LIVE:
            yield f"it stores {LIVE[kind]}"
        nbytes = picture_bytes(kind, data)
        if nbytes > PICTURE_BYTES:
            yield f"a picture of {nbytes:,} bytes, at most {PICTURE_BYTES:,}: fewer points, or smaller"


def picture_bytes(kind: str, data: str) -> int:
    """Return how large a picture is, once it is decoded; what is no picture has no size."""
    if not kind.startswith("image/"):
        return 0
    return len(data.encode() if kind == "image/svg+xml" else base64.b64decode(data))


def text(output: NotebookNode) -> str:
    """Return all that an output says in words, whatever its kind."""
    data = [str(value) for kind, value in output.get("data", {}).items() if kind.startswith("text/")]
    return "\n".join([output.get("text", ""), output.get("evalue", ""), *output.get("traceback", []), *data])


def private() -> str:
    """Return a pattern of what no committed output may hold: folders, addresses, processes, ports, ids of widgets."""
    root = Path(__file__).resolve().parent.parent
    folders = {str(folder) for folder in (root, Path.home(), Path(sys.prefix), Path(tempfile.gettempdir()))}
    return "|".join([*map(re.escape, sorted(folders - {"/"}, key=len, reverse=True)), *CHANGING])


def size_faults(book: NotebookNode) -> Iterator[str]:
    nbytes = len(nbformat.writes(book).encode())
    if nbytes > LIMIT_BYTES:
        yield f"it has {nbytes:,} bytes, at most {LIMIT_BYTES:,}: fewer or smaller pictures"
