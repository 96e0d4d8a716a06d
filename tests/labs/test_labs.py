"""Every lab has the steps of a lab, in cells that are short enough to read: one idea each, in words that say what."""

import ast
import re
from itertools import pairwise

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager

from labs.build import LABS, collected, learners, paths, sources
from labs.source import read
from lt_core.teaching.checks import EXERCISES
from lt_core.teaching.hint import all_ladders

TABLE = set("question predict run see explain explore break yours reveal papers out".split())
BESIDE = set("setup breath teacher".split())
ON_TOP = set("raises-exception tour".split())
EMPTY_WORDS = r"\b(simply|just|obviously|powerful|clearly|easily|trivial|of course)\b"
LABELS = [source.stem for source in sources(LABS)]
BOOKS = {source.stem: read(source) for source in sources(LABS)}
PAGES = {**BOOKS, "tour": collected(LABS)}


def codes(book):
    return [cell for cell in book.cells if cell.cell_type == "code"]


def prose(book):
    return [cell for cell in book.cells if cell.cell_type == "markdown"]


def written(cell):
    """What a learner reads of a code cell: solutions are blanked there."""
    return [line for line in cell.source.split("\n") if line.strip()]


def unfenced(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


each_lab = pytest.mark.parametrize("name", LABELS)
each_page = pytest.mark.parametrize("name", PAGES)


@each_lab
def test_each_step_is_there_at_least_once(name):
    tags = {tag for cell in BOOKS[name].cells for tag in cell.metadata.tags}
    assert tags >= TABLE, f"missing: {sorted(TABLE - tags)}"


@each_page
def test_every_cell_has_one_step_and_no_tag_that_nobody_knows(name):
    for cell in PAGES[name].cells:
        tags = set(cell.metadata.tags)
        assert len(tags & (TABLE | BESIDE)) == 1 and tags <= TABLE | BESIDE | ON_TOP, cell.source[:60]


@each_page
def test_headings_go_down_one_level_at_a_time_from_a_single_first_one(name):
    lines = [line for cell in prose(PAGES[name]) for line in unfenced(cell.source).splitlines()]
    levels = [len(line.split()[0]) for line in lines if re.match("#+ ", line)]
    assert levels[0] == 1 and 1 not in levels[1:]
    assert all(after <= before + 1 for before, after in pairwise(levels))


@each_lab
def test_the_first_line_says_number_and_promise_and_the_header_what_it_takes(name):
    first = BOOKS[name].cells[0].source
    assert re.match(rf"# {name[:2]} - [^:\n]+: .+", first)
    assert re.search(r"\*Builds on .* minutes, \d ranks?, \d+ s of\s+machine time\.\*", first, re.S)


ROW = (
    r"^\| \[(.+?)\]\((\w+)\.ipynb\) \| .+ \| (\d+)[^|]* \| (\d) \| (\S+) \|$"  # title, name, minutes, ranks, builds on
)


def test_the_table_of_labs_has_a_row_a_lab_which_says_what_its_header_says():
    rows = re.findall(ROW, (LABS / "README.md").read_text(encoding="utf-8"), re.M)
    assert [name for _, name, *_ in rows] == LABELS
    for title, name, minutes, ranks, on in rows:
        first = " ".join(BOOKS[name].cells[0].source.split())
        builds = "*Builds on PyTorch tensors alone." if on == "-" else f"*Builds on [lab {on}]"
        assert first.startswith(f"# {title}: ") and builds in first
        assert f" {minutes} minutes, {ranks} ranks, " in first, name


@each_page
def test_no_cell_of_prose_has_more_than_120_words_nor_a_drawing_over_57_columns(name):
    for cell in prose(PAGES[name]):
        words = len(unfenced(cell.source).split())
        assert words <= 120 or "teacher" in cell.metadata.tags, f"{words} words: {cell.source[:60]}"
        for drawing in re.findall(r"^```\n(.*?)^```$", cell.source, re.M | re.S):
            assert max(map(len, drawing.splitlines())) <= 57, drawing


@each_page
def test_prose_has_no_empty_words(name):
    found = [(cell.source[:40], re.findall(EMPTY_WORDS, unfenced(cell.source), re.I)) for cell in prose(PAGES[name])]
    assert [(text, words) for text, words in found if words] == []


@each_page
def test_a_cell_has_at_most_15_lines_and_no_line_that_scrolls(name):
    for cell in codes(learners(PAGES[name])):
        assert len(written(cell)) <= 15, cell.source
        assert max(map(len, written(cell))) <= 71, cell.source


@each_lab
def test_imports_stand_in_the_first_code_cell_alone_and_load_the_magics_by_a_call(name):
    first, *others = [TransformerManager().transform_cell(cell.source) for cell in codes(BOOKS[name])]
    assert "\nmagics.load()" in first
    bodies = [re.sub(r"\A%%.*\n", "", cell.source) for cell in codes(BOOKS[name])[1:]]
    for body in (*others, *bodies):
        found = [node for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Import | ast.ImportFrom)]
        assert found == [], body


@each_lab
def test_no_output_depends_on_what_a_learner_has_done_before(name):
    """`hint` gives another rung each time, a guess another answer: in a lab they are told, not called."""
    for cell in codes(BOOKS[name]):
        assert "hint(" not in cell.source and "guess=" not in cell.source


@each_lab
def test_predictions_are_made_before_they_are_answered_and_each_is(name):
    asked, answered = [], []
    for cell in codes(BOOKS[name]):
        asked += re.findall(r'predict\(\s*"(\S+?)"', cell.source)
        for question in re.findall(r'reveal\(\s*"(\S+?)"', cell.source):
            assert question in asked, f"{question} is answered before it is asked"
            answered.append(question)
    assert sorted(asked) == sorted(answered) and 1 <= len(asked) <= 3
    assert all(question.startswith(f"{name[:2]}.") for question in asked)


@each_lab
def test_each_exercise_has_a_checker_hints_and_a_way_to_them(name):
    text = "\n".join(cell.source for cell in BOOKS[name].cells)
    checked = re.findall(r'check\(\s*"(\S+?)"', text)
    assert checked == [one for one in EXERCISES if one.startswith(name[:2])]
    assert set(checked) <= set(all_ladders()) and "lt_core.teaching import hint" in text


@each_lab
def test_each_chart_of_three_witnesses_says_on_what_was_measured(name):
    """Below its title; what stands in braces there is known when it runs."""
    said: dict[str, str] = {}
    for cell in codes(BOOKS[name]):
        tree = ast.parse(TransformerManager().transform_cell(cell.source))
        for node in sorted(ast.walk(tree), key=lambda node: getattr(node, "lineno", 0)):
            match node:
                case ast.Assign(targets=[ast.Name(id=variable)]):
                    said[variable] = worded(node.value, said)
                case ast.AugAssign(target=ast.Name(id=variable)):
                    said[variable] = said.get(variable, "") + worded(node.value, said)
                case ast.Call(func=ast.Name(id="witnesses")):
                    (under,) = [worded(word.value, said) for word in node.keywords if word.arg == "under"]
                    assert re.search(r"measured on \d (processes|threads)", under), f"{under!r}: {cell.source}"


def worded(node, said):
    """The text that an expression builds, as far as it is known; "" of what is no text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Name(id=variable):
            return said.get(variable, "")
        case ast.FormattedValue(value=inside):
            return worded(inside, said)
        case ast.JoinedStr(values=parts):
            return "".join(worded(part, said) for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return worded(left, said) + worded(right, said)
    return ""


@each_lab
def test_a_reader_gets_breath(name):
    """Between two cells of breath there are not more than eleven to run."""
    since, longest = 0, 0
    for cell in BOOKS[name].cells:
        since = 0 if "breath" in cell.metadata.tags else since + (cell.cell_type == "code")
        longest = max(longest, since)
    assert longest <= 11


@each_lab
def test_no_cell_of_the_executed_lab_prints_more_than_20_lines(name):
    _, path = paths(LABS / "src" / f"{name}.py", LABS)
    for cell in codes(nbformat.read(path, as_version=4)):
        for output in cell.outputs:
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            assert len(text.splitlines()) <= 20, cell.source
