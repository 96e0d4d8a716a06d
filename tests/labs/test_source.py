"""A lab's source gives what the learner may see: solutions blanked, and a mistake in their markers is an error."""

import copy
import re

import pytest

from labs.source import LabError, blank, called_early, exercises, read

EXERCISE = '''def total(parts):
    """The sum of all parts."""
    ### BEGIN SOLUTION
    return sum(parts)
    ### END SOLUTION
'''


def test_a_solution_becomes_one_line_that_says_whose_turn_it_is():
    assert blank(EXERCISE) == (
        'def total(parts):\n    """The sum of all parts."""\n    raise NotImplementedError("your turn: total")\n'
    )


def test_the_rest_of_a_function_stays():
    before, after = "def f(x):\n    y = x\n    if y:\n", "\n    return y"
    written = "        ### BEGIN SOLUTION\n        y += 1\n        # more\n        ### END SOLUTION"
    assert blank(before + written + after) == before + '        raise NotImplementedError("your turn: f")' + after


def test_two_solutions_in_one_cell_are_named_by_their_functions():
    assert re.findall('your turn: (.*)"', blank(EXERCISE + EXERCISE.replace("total", "mean"))) == ["total", "mean"]


def test_code_without_a_solution_stays_as_it_is_and_blanking_twice_is_blanking_once():
    source = "%%torchrun -n 4\nprint(rank)"
    assert blank(source) == source
    assert blank(blank(EXERCISE)) == blank(EXERCISE)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (EXERCISE.replace("    ### END SOLUTION\n", ""), "line 3: ### BEGIN SOLUTION without ### END SOLUTION"),
        (EXERCISE.replace("    ### BEGIN SOLUTION\n", ""), "line 4: ### END SOLUTION without ### BEGIN SOLUTION"),
        (EXERCISE.replace("    return", "    ### BEGIN SOLUTION\n    return"), "line 4: .* begun in line 3"),
        ("### BEGIN SOLUTION\nx = 1\n### END SOLUTION", "line 1: a solution outside of a plain function"),
        (EXERCISE.replace("def", "async def"), "line 3: a solution outside of a plain function"),
        ("%%torchrun -n 2\n" + EXERCISE, "a solution in a cell of %%torchrun"),
    ],
)
def test_a_mistake_in_the_markers_is_an_error(source, words):
    with pytest.raises(LabError, match=words):
        blank(source)


def lab(folder, *cells):
    """Return the path of a source with these cells, each `"tags", "code"`."""
    path = folder / "05_tiny.py"
    path.write_text("\n\n".join(f"# %% {head}\n{code}" for head, code in cells))
    return path


def test_cells_have_ids_of_their_blanked_source_so_a_solution_may_change(tmp_path):
    books = [
        read(lab(tmp_path, ("", "x = 1"), ("", "x = 1"), ('tags=["yours"]', code)))
        for code in (EXERCISE, EXERCISE.replace("sum(parts)", "max(parts)"))
    ]
    ids = [[cell.id for cell in book.cells] for book in books]
    assert ids[0] == ids[1] and len(set(ids[0])) == 3
    assert books[0].metadata.lt_lab.source != books[1].metadata.lt_lab.source


def test_magics_and_tags_survive_reading(tmp_path):
    book = read(lab(tmp_path, ('tags=["run", "raises-exception"]', "# %%torchrun -n 2\nprint(rank)")))
    assert book.cells[0].source == "%%torchrun -n 2\nprint(rank)"
    assert book.cells[0].metadata == {"tags": ["run", "raises-exception"], "slideshow": {"slide_type": "skip"}}


@pytest.mark.parametrize(
    ("tag", "slide"),
    [("question", "slide"), ("predict", "slide"), ("see", "slide"), ("reveal", "fragment"), ("run", "skip")],
)
def test_what_a_lecture_shows_are_questions_predictions_and_pictures(tmp_path, tag, slide):
    (cell,) = read(lab(tmp_path, (f'tags=["{tag}", "tour"]', "x = 1"))).cells
    assert cell.metadata.slideshow.slide_type == slide


@pytest.mark.parametrize("call", ["total([1, 2])", "if True:\n    print(total([1]))", "# %%torchrun -n 2\ntotal([1])"])
def test_a_cell_that_calls_an_exercise_would_stop_run_all(tmp_path, call):
    with pytest.raises(LabError, match="total is an exercise, but a cell calls it"):
        read(lab(tmp_path, ("", EXERCISE), ("", call)))


def test_an_exercise_is_known_in_all_three_notebooks(tmp_path):
    source = read(lab(tmp_path, ("", EXERCISE), ("", "def mine():\n    pass")))
    learner = copy.deepcopy(source)
    learner.cells[0].source = blank(learner.cells[0].source)
    assert exercises(source) == exercises(learner) == {"total"}


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("x = total([1])", ["total"]),
        ("f = total", []),
        ("total(", []),
        ("sum([1])", []),
    ],
)
def test_what_a_cell_calls_when_it_runs(code, names):
    assert called_early(code, {"total"}) == names


def test_an_exercise_may_be_handed_over_and_called_later(tmp_path):
    assert read(lab(tmp_path, ("", EXERCISE), ("", "check(total)\ndef later():\n    return total([1])"))).cells
