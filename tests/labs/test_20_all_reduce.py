"""Lab 20: its exercise takes every right answer and names what is wrong with a wrong one; its pages keep the rules."""

import re

import pytest

from labs.build import LABS
from labs.source import read

BOOK = read(LABS / "src" / "20_all_reduce.py")
STEPS = set("question setup run see explain explore break yours reveal papers out breath teacher".split())


@pytest.fixture(scope="module")
def check():
    """The lab's own checker, from its source."""
    names: dict = {}
    for cell in BOOK.cells:
        if cell.cell_type == "code" and re.match(r"def (play|check)\(", cell.source):
            exec(cell.source.replace("\n\ncheck(step)", ""), names)
    return names["check"]


def solution(rank, k, p):
    return (rank - k) % p, (rank - k - 1) % p


def starts_at_the_next_chunk(rank, k, p):
    return (rank - k + 1) % p, (rank - k) % p


def a_list_of_numbers_below_zero(rank, k, p):
    return [(rank - k) % p - p, (rank - k - 1) % p - p]


def unwritten(rank, k, p):
    raise NotImplementedError("your turn: step")


@pytest.mark.parametrize("right", [solution, starts_at_the_next_chunk, a_list_of_numbers_below_zero])
def test_every_right_answer_is_taken(check, capsys, right):
    check(right)
    assert capsys.readouterr().out == "✔ every chunk is whole on one rank, with 2 to 8 ranks\n"


def test_an_unwritten_exercise_fails_nothing(check, capsys):
    check(unwritten)
    assert capsys.readouterr().out == "not yet: write step, and run its cell and this one\n"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda rank, k, p: ((rank - k) % p, (rank - k + 1) % p), "3 ranks, round 0: rank 0 takes 1, 2 sends 2"),
        (lambda rank, k, p: ((rank - k - 1) % p, (rank - k) % p), "3 ranks, round 0: rank 0 takes 0, 2 sends 1"),
        (lambda rank, k, p: ((rank - k) % p, (rank - k) % p), "2 ranks, round 0: rank 0 takes 0, 1 sends 1"),
        (lambda rank, k, p: ((rank - k) % 4, (rank - k - 1) % 4), "2 ranks, round 0: rank 0 takes 3, 1 sends 1"),
        (lambda rank, k, p: ((rank - k) % 5, (rank - k - 1) % 5), "2 ranks, round 0: rank 0 takes 4, 1 sends 1"),
        (lambda rank, k, p: (rank, (rank - 1) % p), "3 ranks, round 1: rank 0 counts rank 2 twice"),
        (lambda rank, k, p: ((rank + k) % p, (rank + k - 1) % p), "3 ranks: whole in the end are the chunks []"),
        (lambda rank, k, p: (0, 0), "2 ranks: whole in the end are the chunks [0, 0]"),
        (lambda rank, k, p: (p - 1 - k, p - 1 - k), "2 ranks: whole in the end are the chunks [1, 1]"),
        (lambda rank, k, p: (rank + 1, rank), "step gives two chunks from 0 to p - 1"),
        (lambda rank, k, p: None, "step gives two chunks from 0 to p - 1"),
        (lambda rank, k, p: (rank - k) % p, "step gives two chunks from 0 to p - 1"),
        (lambda rank, k, p: ("a", "b"), "step gives two chunks from 0 to p - 1"),
    ],
)
def test_each_wrong_answer_is_named(check, capsys, wrong, said):
    check(wrong)
    text = capsys.readouterr().out
    assert text.startswith("✘ ") and said in text, text


def test_every_cell_has_one_step():
    for cell in BOOK.cells:
        assert len(STEPS & set(cell.metadata.get("tags", []))) == 1, cell.source[:60]


def test_headings_go_down_one_level_at_a_time():
    lines = [line for cell in BOOK.cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
    headings = [line.split()[0] for line in lines if re.match("#+ ", line)]
    assert headings[0] == "#" and set(headings[1:]) == {"##"} and len(headings) <= 7


def test_no_cell_of_prose_has_more_than_120_words():
    for cell in BOOK.cells:
        if cell.cell_type == "markdown":
            words = len(re.sub(r"```.*?```", "", cell.source, flags=re.S).split())
            assert words <= 120, f"{words} words: {cell.source[:60]}"


def test_no_line_of_code_scrolls_sideways():
    for cell in BOOK.cells:
        if cell.cell_type == "code":
            assert max(map(len, cell.source.splitlines())) <= 71
