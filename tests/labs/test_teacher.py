"""The teacher's archive has the same bytes each time, and holds what a teacher needs, for nbgrader and to read."""

import io
import json
import re
import zipfile

import nbformat
import pytest

from labs.build import learners, paths
from labs.source import LabError, read
from labs.teacher import archive, assignment, contents, main

SOURCE = '''# %% [markdown] tags=["question"]
# # 20 - All-reduce: in short

# %% tags=["setup"]
from lt_core.teaching import check

# %% tags=["yours"]
def reduce_scatter(comm, x):
    """Half a ring."""
    ### BEGIN SOLUTION
    return half(x)
    ### END SOLUTION

# %% tags=["yours"]
"""The check."""
check("20.reduce_scatter", reduce_scatter)

# %% tags=["run"]
# %%torchrun -n 4
comm

# %% [markdown] tags=["teacher"]
# <details><summary>For teachers</summary>Draw three ranks.</details>

# %% tags=["teacher"]
class_chart(lines)
'''


@pytest.fixture
def labs(tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "solutions").mkdir()
    (tmp_path / "README.md").write_text("The labs")
    source = tmp_path / "src" / "20_all_reduce.py"
    source.write_text(SOURCE)
    for path, book in zip(paths(source, tmp_path), (learners(read(source)), read(source)), strict=True):
        nbformat.write(book, path)
    return tmp_path


def test_what_it_holds_and_that_its_bytes_are_always_the_same(labs):
    first, second = (archive(dict(contents(labs))) for _ in range(2))
    assert first == second
    with zipfile.ZipFile(io.BytesIO(first)) as packed:
        assert packed.testzip() is None
        assert packed.namelist() == [
            "teacher/20_all_reduce.ipynb",
            "teacher/NOTES.md",
            "teacher/README.md",
            "teacher/nbgrader/source/20_all_reduce/20_all_reduce.ipynb",
            "teacher/solutions/20_all_reduce.ipynb",
            "teacher/src/20_all_reduce.py",
        ]
        assert "Draw three ranks" in packed.read("teacher/solutions/20_all_reduce.ipynb").decode()
        assert packed.read("teacher/src/20_all_reduce.py").decode() == SOURCE


def test_the_order_of_files_does_not_matter(labs):
    files = dict(contents(labs))
    assert archive(files) == archive(dict(reversed(files.items())))


def test_notes_have_what_is_asked_a_solution_and_the_hints(labs):
    notes = dict(contents(labs))["NOTES.md"]
    assert notes.startswith(
        "# For teachers\n\n## 20 - All-reduce: in short\n\nDraw three ranks.\n\n```python\nclass_chart(lines)\n```\n"
    )
    assert "### 20.reduce_scatter: `reduce_scatter(comm, x)`" in notes
    assert "- input untouched\n" in notes and "\n4. In round k you send chunk" in notes
    assert '```python\ndef reduce_scatter(comm, x):\n    """Half a ring."""\n    return half(x)\n```' in notes


def test_an_assignment_has_a_solution_and_a_locked_check_that_must_pass(labs):
    made = assignment(read(labs / "src" / "20_all_reduce.py"))
    nbformat.validate(made)
    words = {cell.source.split("\n")[0]: cell for cell in made.cells}
    assert not any(re.search("Draw three ranks|class_chart", cell.source) for cell in made.cells)
    solution, check = words["def reduce_scatter(comm, x):"], words['"""The check."""']
    assert (solution.metadata.nbgrader.solution, solution.metadata.nbgrader.grade) == (True, False)
    assert "### BEGIN SOLUTION" in solution.source
    graded = check.metadata.nbgrader
    assert (graded.grade, graded.locked, graded.points, graded.solution) == (True, True, 1, False)
    assert check.source.split("\n")[1:] == [
        'checked_0 = check("20.reduce_scatter", reduce_scatter)',
        "### BEGIN HIDDEN TESTS",
        "assert checked_0.passed",
        "### END HIDDEN TESTS",
    ]
    ids = [cell.metadata.nbgrader.grade_id for cell in made.cells if "nbgrader" in cell.metadata]
    assert len(ids) == len(set(ids)) == 2


def test_the_hidden_tests_fail_what_is_not_solved(labs):
    made = assignment(read(labs / "src" / "20_all_reduce.py"))
    (check,) = [cell.source for cell in made.cells if "HIDDEN" in cell.source]

    class Failed:
        passed = False

    with pytest.raises(AssertionError):
        exec(check, {"check": lambda name, fn: Failed, "reduce_scatter": None})


def test_labs_that_are_older_than_their_source_are_refused(labs, monkeypatch, capsys):
    source = labs / "src" / "20_all_reduce.py"
    source.write_text(SOURCE + "\n# more\n")
    monkeypatch.setattr("labs.teacher.LABS", labs)
    assert main([str(labs / "out.zip")]) == 1 and not (labs / "out.zip").exists()
    assert capsys.readouterr().err == "not built from their sources: 20_all_reduce; make labs\n"


def test_without_labs_there_is_no_archive(labs):
    for source in (labs / "src").iterdir():
        source.unlink()
    with pytest.raises(LabError, match="no lab is there; make labs"):
        dict(contents(labs))


def test_a_notebook_of_the_archive_can_be_read(labs):
    books = {name: nbformat.from_dict(json.loads(text)) for name, text in contents(labs) if name.endswith(".ipynb")}
    assert books and [name for name, book in books.items() if not nbformat.validator.isvalid(book)] == []
