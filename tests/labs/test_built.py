"""The committed notebooks are what the sources give: the same code, fresh, complete, and short enough to read."""

import nbformat
import pytest

from labs.build import LABS, is_fresh, learners, paths
from labs.rules import codes, learner_faults, solution_faults
from labs.source import read

SOURCES = sorted((LABS / "src").glob("[0-9]*.py"))
BUILT = {path.stem for folder in (LABS, LABS / "solutions") for path in folder.glob("[0-9]*.ipynb")}


def test_every_source_was_built_and_every_notebook_has_its_source():
    assert {source.stem for source in SOURCES} == BUILT


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_both_notebooks_were_built_from_this_source_and_hold_its_code(source):
    assert is_fresh(source, LABS), "the source changed: run make labs"
    learner, solution = (nbformat.read(path, as_version=4) for path in paths(source, LABS))
    assert codes(learner) == codes(solution) == codes(read(source))
    assert [*learner_faults(learner), *solution_faults(solution)] == []
    assert learner.metadata == learners(read(source)).metadata
