"""make labs: one source a lab, src/NN_slug.py -> NN_slug.ipynb (the learner's) and solutions/NN_slug.ipynb (executed).

Only labs whose source changed are built: its hash stands in the notebooks. `--force` builds all. Nothing is written
unless both notebooks ran to the end and keep the rules, so a committed pair is always whole. The tour comes last: it is
collected from the labs.
"""

import copy
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import groupby
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from labs.picture import WIDGET, camera, develop, figures
from labs.rules import codes, learner_faults, solution_faults
from labs.source import LabError, blanked, digest, read
from labs.tour import tour

LABS = Path(__file__).parent
CELL_LIMIT_S = 60


def main(arguments: list[str]) -> int:
    """Build what changed and return the exit code; a lab that fails does not keep the others from being built."""
    failed = 0
    with ExitStack() as stack:
        for name, make in stale(LABS, lazily(stack), "--force" in arguments):
            try:
                print(make(), flush=True)
            except LabError as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed = 1
    return failed


def stale(
    labs: Path, develop: Callable[[NotebookNode], None], force: bool = False
) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of each notebook that is not what its source says, and what builds it."""
    for source in sources(labs):
        if force or not is_fresh(source, labs):
            yield source.stem, partial(build, source, labs, develop)
    if force or not tour_is_fresh(labs):
        yield "tour", partial(build_tour, labs)


def sources(labs: Path) -> list[Path]:
    return sorted((labs / "src").glob("[0-9]*.py"))


def lazily(stack: ExitStack) -> Callable[[NotebookNode], None]:
    """Return `develop` which opens the camera before the first figure, and closes it with the stack."""
    opened: list[None] = []

    def developed(book: NotebookNode) -> None:
        if figures(book) and not opened:
            opened.append(stack.enter_context(camera()))
        develop(book)

    return developed


def paths(source: Path, labs: Path) -> tuple[Path, Path]:
    """Return where the learner's and the solution notebook of a source stand."""
    return labs / f"{source.stem}.ipynb", labs / "solutions" / f"{source.stem}.ipynb"


def is_fresh(source: Path, labs: Path) -> bool:
    """Return whether both notebooks were built from the source as it is now."""
    wanted = digest(source.read_text(encoding="utf-8"))
    return all(path.exists() and stored_source(path) == wanted for path in paths(source, labs))


def stored_source(path: Path) -> str:
    return json.loads(path.read_text(encoding="utf-8"))["metadata"].get("lt_lab", {}).get("source", "")


def build(source: Path, labs: Path, develop: Callable[[NotebookNode], None]) -> str:
    """Write both notebooks of one lab, and return a line that says what that took."""
    start = time.monotonic()
    book = read(source)
    learner = learners(book)
    execute(copy.deepcopy(learner))
    solution = execute(book)
    develop(solution)
    if not codes(read(source)) == codes(learner) == codes(solution):
        raise LabError("the code of source, learner's and solution notebook differs")
    refuse(*learner_faults(learner), *solution_faults(solution))
    for path, built in zip(paths(source, labs), (learner, solution), strict=True):
        path.parent.mkdir(exist_ok=True)
        nbformat.write(built, path)
    sizes = [f"{path.stat().st_size / 1000:,.0f} kB" for path in paths(source, labs)]
    return f"{source.stem}: {sizes[0]} and {sizes[1]}, {time.monotonic() - start:.0f} s"


def collected(labs: Path) -> NotebookNode:
    """Return the tour as the sources give it now."""
    return tour(labs / "src" / "tour.py", sources(labs))


def tour_is_fresh(labs: Path) -> bool:
    """Return whether the tour is what its cells in the labs' sources are now."""
    path = labs / "tour.ipynb"
    return path.exists() and stored_source(path) == collected(labs).metadata.lt_lab.source


def build_tour(labs: Path) -> str:
    """Write the tour once it has run to the end, and return a line that says what that took."""
    start, book = time.monotonic(), collected(labs)
    execute(copy.deepcopy(book))
    refuse(*learner_faults(book))
    nbformat.write(book, labs / "tour.ipynb")
    return f"tour: {(labs / 'tour.ipynb').stat().st_size / 1000:,.0f} kB, {time.monotonic() - start:.0f} s"


def refuse(*faults: str) -> None:
    if faults:
        raise LabError("\n  ".join(faults))


def learners(book: NotebookNode) -> NotebookNode:
    """Return the learner's notebook: solutions blanked, no teachers' cells, nothing executed."""
    learner = copy.deepcopy(book)
    learner.cells = [cell for cell in learner.cells if "teacher" not in cell.metadata.get("tags", [])]
    for cell in learner.cells:
        cell.source = blanked(cell)
    learner.metadata.lt_lab.cells = digest("\n".join(cell.source for cell in learner.cells))  # a copy is told by it
    return learner


def execute(book: NotebookNode) -> NotebookNode:
    """Run all cells in a new kernel, and leave only what the next run would give as well.

    It runs in a new folder: what a learner has said before changes nothing, and what the lab writes is gone after it.
    """
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            book,
            timeout=CELL_LIMIT_S,
            kernel_name="python3",
            store_widget_state=False,
            record_timing=False,
            resources={"metadata": {"path": folder}},
        )
        try:
            client.execute()
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            raise LabError(f"Run All stops: {error}") from None
    book.metadata.language_info = NotebookNode(name="python")
    for count, cell in enumerate((cell for cell in book.cells if cell.cell_type == "code"), 1):
        cell.execution_count = count
        cell.outputs = list(normalised(cell.outputs, count))
    return book


def normalised(outputs: list[NotebookNode], count: int) -> Iterator[NotebookNode]:
    """Yield outputs without what differs between runs: pieces of a stream, widgets, counts, frames of a traceback."""
    for name, group in groupby(outputs, key=lambda output: output.get("name")):
        pieces = list(group)
        if name:
            yield NotebookNode(output_type="stream", name=name, text="".join(piece.text for piece in pieces))
            continue
        for output in pieces:
            output.get("data", {}).pop(WIDGET, None)
            if output.output_type == "execute_result":
                output.execution_count = count
            if output.output_type == "error":
                output.traceback = [f"{output.ename}: {output.evalue}"]
            if output.get("data", True):
                yield output


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
