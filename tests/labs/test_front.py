"""The first page's pictures are of a real run, small, and shown with words."""

import re

import nbformat
import pytest

from labs.front import LABS, RING, SOLUTION, STEPPER, taken

LIMITS = {RING: 60_000, STEPPER: 120_000}


def test_the_committed_picture_is_the_labs_own():
    same = RING.read_bytes() == taken(SOLUTION)  # pytest would look for minutes where two pictures differ
    assert same, "lab 20 was built again: python -m labs.front takes its pictures"


@pytest.mark.parametrize("picture", LIMITS, ids=lambda picture: picture.name)
def test_they_are_small_pngs(picture):
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG") and len(data) <= LIMITS[picture]


def test_the_first_page_shows_them_with_words():
    shown = dict(re.findall(r"^!\[([^\]]+)\]\((labs/pictures/[^)]+)\)", (LABS.parent / "README.md").read_text(), re.M))
    there = {picture.relative_to(LABS.parent).as_posix() for picture in LIMITS}
    assert RING.relative_to(LABS.parent).as_posix() in shown.values() and set(shown.values()) <= there
    assert all(len(words) > 40 for words in shown)


def test_a_notebook_without_that_figure_is_refused(tmp_path):
    empty = tmp_path / "empty.ipynb"
    nbformat.write(nbformat.v4.new_notebook(), empty)
    with pytest.raises(LookupError, match=r"empty\.ipynb has no figure whose words begin with 'Same sum"):
        taken(empty)
