"""The first page's picture is the one of the executed lab, and small."""

import re

import nbformat
import pytest

from labs.front import LABS, PICTURE, SOLUTION, taken


def test_the_committed_picture_is_the_labs_own():
    assert PICTURE.read_bytes() == taken(SOLUTION)


def test_it_is_a_png_of_at_most_60_kb():
    data = PICTURE.read_bytes()
    assert data.startswith(b"\x89PNG") and len(data) <= 60_000


def test_the_first_page_shows_it_with_words():
    shown = re.findall(r"^!\[([^\]]+)\]\((labs/pictures/[^)]+)\)", (LABS.parent / "README.md").read_text(), re.M)
    assert [path for _, path in shown] == [PICTURE.relative_to(LABS.parent).as_posix()]
    assert all(len(words) > 40 for words, _ in shown)


def test_a_notebook_without_that_figure_is_refused(tmp_path):
    empty = tmp_path / "empty.ipynb"
    nbformat.write(nbformat.v4.new_notebook(), empty)
    with pytest.raises(LookupError, match=r"empty\.ipynb has no figure whose words begin with 'Same sum"):
        taken(empty)
