"""One source gives two notebooks: the learner's runs to the end, the solution is executed, and two builds are equal."""

import base64
import io

import nbformat
import pytest
from PIL import Image

from labs.build import build, is_fresh, paths
from labs.picture import SCALES, camera, chromium, develop, of_few_colours
from labs.rules import learner_faults, solution_faults
from labs.source import LabError

pytestmark = pytest.mark.processes

TINY = """# %% [markdown] tags=["question"]
# # 05 - Tiny: a lab to build

# %% tags=["setup"]
from IPython.display import HTML, display

def check(function):
    try:
        print(function([1, 2]))
    except NotImplementedError:
        print("not yet")

# %% tags=["run"]
import sys
for word in "four ranks one sum".split():
    print(word, flush=True)
4

# %% tags=["break", "raises-exception"]
raise ValueError("rank 1 left")

# %% tags=["yours"]
def total(parts):
    ### BEGIN SOLUTION
    return sum(parts)
    ### END SOLUTION

# %% tags=["check"]
check(total)

# %% [markdown] tags=["teacher"]
# Ask who holds chunk 2.

# %% tags=["teacher"]
print("a chart of the class")
"""
FIGURE = """
# %% tags=["see"]
bars = [{"type": "bar", "x": [1, 2], "y": [3, 4]}]
figure = {"data": bars, "layout": {"height": 200}}
kind = "application/vnd.plotly.v1+json"
picture = {"image/png": {"alt": "two bars", "width": 860}}
shown = {kind: figure, "text/plain": "2 bars"}
display(shown, raw=True, metadata=picture)
words = "<details><summary>In words</summary>2 bars</details>"
display(HTML(words))
"""


def made(folder, source, develop=lambda book: None):
    """Build a source twice, and return the learner's and the solution notebook as texts of each build."""
    path = folder / "05_tiny.py"
    path.write_text(source)
    texts = []
    for _ in range(2):
        build(path, folder, develop)
        texts.append([built.read_text() for built in paths(path, folder)])
    return texts


def test_two_builds_are_equal_to_the_byte_and_hold_what_each_reader_needs(tmp_path):
    first, second = made(tmp_path, TINY)
    assert first == second
    learner, solution = (nbformat.reads(text, as_version=4) for text in first)
    nbformat.validate(learner)
    nbformat.validate(solution)
    assert [*learner_faults(learner), *solution_faults(solution)] == []
    assert "your turn: total" in first[0] and "your turn: total" not in first[1]
    assert "return sum(parts)" not in first[0] and "return sum(parts)" in first[1]
    assert "Ask who holds" not in first[0] and "Ask who holds" in first[1]
    assert "a chart of the class" not in first[0] and "a chart of the class" in first[1]
    assert [cell.id for cell in learner.cells] == [cell.id for cell in solution.cells][:-2]
    run, broken, checked = (solution.cells[place].outputs for place in (2, 3, 5))
    assert [output.get("text", output.get("data")) for output in run] == [
        "four\nranks\none\nsum\n",
        {"text/plain": "4"},
    ]
    assert broken[0].traceback == ["ValueError: rank 1 left"]
    assert checked[0].text == "3\n"


@pytest.mark.browser
@pytest.mark.skipif(not chromium(), reason="no Chromium to draw with")
def test_figures_become_small_pictures_with_alt_text_and_the_bytes_stay_equal(tmp_path):
    with camera():
        first, second = made(tmp_path, TINY + FIGURE, develop)
    assert first == second
    solution = nbformat.reads(first[1], as_version=4)
    assert list(solution_faults(solution)) == []
    shown, words = solution.cells[-1].outputs
    assert shown.metadata == {"image/png": {"alt": "two bars", "width": 860}}
    assert sorted(shown.data) == ["image/png", "text/plain"] and "2 bars" in words.data["text/html"]
    picture = seen(shown)
    assert picture.size == (1720, 400) and len(picture.getcolors()) <= 64


def seen(output):
    return Image.open(io.BytesIO(base64.b64decode(output.data["image/png"])))


def test_few_colours_leave_a_line_its_colour_and_a_grey_band_its_grey():
    grey, lines = (213, 215, 217), [(0, 114, 178), (230, 159, 0), (0, 158, 115), (213, 94, 0), (204, 121, 167)]
    image = Image.new("RGB", (1000, 600), "white")
    image.paste(grey, (0, 100, 1000, 140))
    for k, (r, g, b) in enumerate(lines):  # a line, and the passages at its edges to white and to grey
        image.paste((r, g, b), (0, 200 + 10 * k, 600, 202 + 10 * k))
        for step in range(1, 100):
            for y, (to_r, to_g, to_b) in ((300, (255, 255, 255)), (400, grey)):
                mixed = [round(a + (z - a) * step / 100) for a, z in ((r, to_r), (g, to_g), (b, to_b))]
                image.putpixel((step, y + k), tuple(mixed))
    few = of_few_colours(image)
    assert len(few.getcolors()) <= 64
    seen_at = few.convert("RGB").getpixel
    assert max(abs(a - b) for a, b in zip(seen_at((500, 120)), grey)) <= 3
    for k, colour in enumerate(lines):
        assert max(abs(a - b) for a, b in zip(seen_at((300, 201 + 10 * k)), colour)) <= 12


@pytest.mark.browser
@pytest.mark.skipif(not chromium(), reason="no Chromium to draw with")
def test_pictures_are_smaller_where_the_notebook_would_be_too_large():
    v4 = nbformat.v4
    data = {"application/vnd.plotly.v1+json": {"data": [], "layout": {"height": 200}}, "text/plain": "an empty plane"}
    shown = v4.new_output("display_data", data=data, metadata={"image/png": {"alt": "an empty plane", "width": 860}})
    large = v4.new_output("stream", text="x" * 399_000)
    book = v4.new_notebook(cells=[v4.new_code_cell(outputs=[shown, large])])
    with camera():
        develop(book)
    shown, _ = book.cells[0].outputs
    assert seen(shown).size == (round(860 * SCALES[-1]), round(200 * SCALES[-1]))  # after all the larger ones
    assert sorted(shown.data) == ["image/png", "text/plain"]


def test_a_lab_is_built_again_only_when_its_source_changed(tmp_path):
    path = tmp_path / "05_tiny.py"
    path.write_text("# %%\nx = 1\n")
    assert not is_fresh(path, tmp_path)
    build(path, tmp_path, lambda book: None)
    assert is_fresh(path, tmp_path)
    path.write_text("# %%\nx = 2\n")
    assert not is_fresh(path, tmp_path)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("# %%\nraise KeyError(3)\n", "Run All stops"),
        ('# %% tags=["raises-exception"]\nx = 1\n', "code cell 1: tagged raises-exception, but it did not raise"),
    ],
)
def test_a_lab_that_breaks_a_rule_is_not_written(tmp_path, source, words):
    path = tmp_path / "05_tiny.py"
    path.write_text(source)
    with pytest.raises(LabError, match=words):
        build(path, tmp_path, lambda book: None)
    assert not any(built.exists() for built in paths(path, tmp_path))
