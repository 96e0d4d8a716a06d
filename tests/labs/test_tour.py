"""The tour holds what the labs have tagged for it, in their order, and stands by itself: it runs, nothing solved."""

import tempfile
from pathlib import Path

import nbformat
import pytest

from labs.build import LABS, collected, execute, tour_is_fresh
from labs.rules import SHOWN, learner_faults
from labs.source import read
from labs.tour import chosen, lowered, tour

SOURCE = """# %% [markdown] tags=["question", "tour"]
# # 05 - Tiny: a lab

# %% tags=["setup"]
import torch

# %% tags=["run", "tour"]
print(1)

# %% tags=["run"]
print(2)
"""
FRAME = """# %% [markdown] tags=["question", "tour"]
# # Twenty minutes

# %% [markdown] tags=["out", "tour"]
# ## Go on
"""


def test_it_is_collected_from_the_labs_as_they_are_and_comes_as_a_learner_gets_it():
    assert tour_is_fresh(LABS), "a lab's source changed: run make labs"
    book = nbformat.read(LABS / "tour.ipynb", as_version=4)
    nbformat.validate(book)
    assert list(learner_faults(book)) == []
    assert [cell.source for cell in book.cells] == [cell.source for cell in collected(LABS).cells]


@pytest.mark.processes
@pytest.mark.timeout(120)
def test_it_runs_to_its_end_as_a_learner_gets_it_and_leaves_no_ranks(monkeypatch):
    with tempfile.TemporaryDirectory(prefix="lt-", dir="/tmp") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        book = execute(nbformat.read(LABS / "tour.ipynb", as_version=4))  # stops at a cell that raises
        assert list(Path(runtime, "lt_core").iterdir()) == []
    run = [cell for cell in book.cells if cell.cell_type == "code"]
    assert [cell.source for cell in run if SHOWN & set(cell.metadata.tags) and not cell.outputs] == []
    told = "\n".join(output.get("data", {}).get("text/plain", "") for cell in run for output in cell.outputs)
    assert "had [1, 2, 3, 4], got [1111, 2222, 3333, 4444]" in told


def test_a_lab_gives_its_imports_and_its_tagged_cells_one_level_down(tmp_path):
    lab, frame = tmp_path / "05_tiny.py", tmp_path / "tour.py"
    lab.write_text(SOURCE)
    frame.write_text(FRAME)
    cells = tour(frame, [lab]).cells
    assert [cell.source for cell in cells] == [
        "# Twenty minutes", "## 05 - Tiny: a lab", "import torch", "print(1)", "## Go on"
    ]  # fmt: skip
    assert len({cell.id for cell in cells}) == len(cells)


def test_a_lab_without_tagged_cells_gives_nothing(tmp_path):
    lab = tmp_path / "05_tiny.py"
    lab.write_text(SOURCE.replace(', "tour"', ""))
    assert list(chosen(read(lab))) == []


def test_two_labs_with_one_cell_in_common_keep_both(tmp_path):
    frame, labs = tmp_path / "tour.py", [tmp_path / "05_tiny.py", tmp_path / "06_tiny.py"]
    frame.write_text(FRAME)
    for lab in labs:
        lab.write_text(SOURCE)
    cells = tour(frame, labs).cells
    assert len({cell.id for cell in cells}) == len(cells) == 8


def test_what_stands_in_a_fence_is_no_heading():
    assert lowered("# One\n```\n# a comment\n```\n## Two") == "## One\n```\n# a comment\n```\n### Two"
