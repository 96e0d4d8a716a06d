"""pytest -p tests.guards: what `--nbval-lax` lets pass and must not.

Lax runs each stored cell and fails on an unexpected error, no more. So these do the rest: before a cell runs, what is
stored must be complete and its magics known; after it ran, its errors and its figures' words must be the stored ones.
"""

import re
import tempfile
from collections.abc import Collection, Iterator
from typing import Any

import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbval import plugin
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell

from labs.rules import kind_faults, source_faults
from labs.source import called_early, called_too_early, exercises

MAGICS = {"time", "timeit", "capture", "writefile", "torchrun"}
CALL = r"get_ipython\(\)\.(?:run_(?:cell|line)_magic\('(\w+)'|(?:system|getoutput)\()"
PICTURE, FIGURE = "image/png", "application/vnd.plotly.v1+json"


class Alone(RunningKernel):
    """A kernel in a new folder, whatever `cwd` says: no learner's file changes what it does, and it leaves none."""

    def __init__(self, kernel_name: str, cwd: str = "", **options: Any) -> None:
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        super().__init__(kernel_name, cwd=self.folder.name, **options)

    def stop(self) -> None:
        super().stop()
        self.folder.cleanup()


def pytest_configure() -> None:
    """Let nbval run each notebook in such a kernel."""
    plugin.RunningKernel = Alone


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail the cell on its first fault, in nbval's own words of failure."""
    if not isinstance(item, IPyNbCell):
        return (yield)
    for fault in stored_faults(item.cell, exercises(item.parent.nb)):
        item.raise_cell_error(fault)
    result = yield
    for fault in live_faults(item.cell, item.test_outputs or []):
        item.raise_cell_error(fault)
    return result


def stored_faults(cell: Any, unwritten: Collection[str] = ()) -> Iterator[str]:
    """Yield what is wrong with the cell as it is stored, before it runs; `unwritten`: functions of the learner's."""
    tags = cell.metadata.get("tags", [])
    yield from source_faults(cell)
    yield from map(called_too_early, called_early(cell.source, set(unwritten)))
    for output in cell.outputs:
        yield from kind_faults(output)
    for name in magics(cell.source):
        if name not in MAGICS:
            yield f"unregistered magic: {name}; an unknown cell magic passes with its body never run"
    if re.search(r"^\s*#\s*(NBVAL|PYTEST_VALIDATE)_\w+", cell.source, re.M):
        yield "NBVAL comment in a source: above a %%magic it breaks the magic; tag the cell instead"
    if "nbval-skip" in tags:
        yield "skipped cell: it proves nothing, so take it out"
    if cell.execution_count is None:
        yield "no execution count stored: the solution was not executed; run make labs"
    if "nbval-check-output" in tags and not cell.outputs:
        yield "marked for comparison, but no output is stored"
    if errors(cell.outputs) and "raises-exception" not in tags:
        yield "an error is stored, but the cell is not tagged raises-exception"


def live_faults(cell: Any, outputs: list[Any]) -> Iterator[str]:
    """Yield what is wrong with what the cell did when it ran."""
    for output in outputs:
        if output["output_type"] == "stream" and output["name"] == "stderr" and "UsageError" in output["text"]:
            yield f"UsageError on stderr: {output['text'].strip()}"
    stored, live = errors(cell.outputs), errors(outputs)
    if "raises-exception" in cell.metadata.get("tags", []) and not live:
        yield "tagged raises-exception, but it did not raise"
    if stored != live:
        yield f"another error than the stored one: {stored} became {live}"
    stored, live = words(cell.outputs, PICTURE), words(outputs, FIGURE)
    if stored != live:
        yield f"the figures' words differ from the stored ones: {stored} became {live}"


def magics(source: str) -> list[str]:
    """Return the names of the magics that IPython itself finds in a cell; a call of the shell is named `!`."""
    code = TransformerManager().transform_cell(source)
    return [name or "!" for name in re.findall(CALL, code)]


def errors(outputs: list[Any]) -> list[str]:
    """Return the types of the errors among a cell's outputs."""
    return [output["ename"] for output in outputs if output["output_type"] == "error"]


def words(outputs: list[Any], kind: str) -> list[str]:
    """Return the text/plain of each output that carries the kind: what a figure says to those who cannot see it."""
    return [output["data"].get("text/plain", "") for output in outputs if kind in output.get("data", {})]
