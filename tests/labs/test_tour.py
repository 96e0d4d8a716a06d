"""The tour holds what the labs have tagged for it, in their order, and stands by itself."""

import nbformat

from labs.build import LABS, collected, tour_is_fresh
from labs.rules import learner_faults
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


def test_it_is_collected_from_the_labs_as_they_are_and_runs_as_a_learner_gets_it():
    assert tour_is_fresh(LABS), "a lab's source changed: run make labs"
    book = nbformat.read(LABS / "tour.ipynb", as_version=4)
    nbformat.validate(book)
    assert list(learner_faults(book)) == []
    assert [cell.source for cell in book.cells] == [cell.source for cell in collected(LABS).cells]


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
