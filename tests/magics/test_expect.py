"""`--expect ValueError` passes where that error came, says it in one line, and passes nowhere else."""

import pytest

from lt_core.base.errors import Mismatch, RankError
from lt_core.comm.failure import Failure
from lt_core.comm.failure import error as told
from lt_core.comm.group import Outcome
from lt_core.magics.expect import came, missing

DETAILS = """line 3 of the cell: raise ValueError("boom")
Traceback (most recent call last):
  File "<cell 4>", line 3, in <module>
ValueError: boom
what followed:
  rank 0: ValueError: boom
  rank 3: ValueError: boom at last
  rank 1: Aborted: rank 2 raised ValueError: boom"""
LINE = ' (line 3: raise ValueError("boom"))'


def failed(kind="ValueError", message="boom", details=DETAILS, cause=None):
    error = RankError(2, kind, message, details)
    error.__cause__ = cause
    return error


def test_the_error_in_one_line():
    error = failed("KeyError", "'x'", "line 1 of the cell: {}['x']\nTraceback ...")
    assert came("KeyError", error) == "as expected, rank 2 failed first: KeyError: 'x' (line 1: {}['x'])"


def test_ranks_that_failed_alike_are_named_together_since_who_was_first_is_chance():
    assert came("ValueError", failed()) == f"as expected, ranks 0, 2 failed first: ValueError: boom{LINE}"


def test_the_first_line_of_a_long_message():
    assert came("ValueError", failed(message="boom\nand more")).startswith(
        "as expected, rank 2 failed first: ValueError: boom ("
    )


def test_ranks_are_named_together_in_a_long_message_too():
    failures = [Failure(rank, 0.0, "KeyError", "one\n  rank 5: KeyError: two") for rank in (1, 3)]
    assert came("KeyError", told(failures)) == "as expected, ranks 1, 3 failed first: KeyError: one"


def test_an_error_without_a_line():
    assert came("died", failed("died", "exit code 7", "")) == "as expected, rank 2 failed first: died: exit code 7"


def test_where_no_rank_was_first_none_is_named():
    error = RankError(0, "Deadline", "a circle, 0 -> 1 -> 0", "where the ranks are:", shared=True)
    assert came("Deadline", error) == "as expected: Deadline: a circle, 0 -> 1 -> 0"


@pytest.mark.parametrize("name", ["Mismatch", "UserError", "ValueError", "Exception"])
def test_what_the_error_is_a_kind_of_is_it_too(name):
    assert came(name, failed("Mismatch", "2 calls", "", Mismatch("2 calls")))


@pytest.mark.parametrize("name", ["TypeError", "valueerror", "Value", "Aborted", "RankError"])
def test_another_error_is_not_it(name):
    assert came(name, failed(cause=ValueError("boom"))) == ""


def test_a_syntax_error_comes_before_any_rank():
    try:
        compile("x = (\n", "<cell 4>", "exec")
    except SyntaxError as error:
        assert came("SyntaxError", error) == (
            "as expected, no rank ran the cell: SyntaxError: '(' was never closed (line 1 of the cell)"
        )
        assert came("ValueError", error) == ""


def test_no_error_is_an_error():
    assert str(missing("ValueError")) == (
        "the cell ran to its end; got no error; expected ValueError, as --expect says; try: without --expect"
    )


def test_the_expected_error_lets_the_cell_pass_in_one_line(notebook, groups, capsys):
    groups.outcome = failed()
    notebook.run("%%torchrun -n 4 --expect ValueError\npass")
    assert capsys.readouterr().out == f"as expected, ranks 0, 2 failed first: ValueError: boom{LINE}\n"


def test_another_error_fails_the_cell(notebook, groups):
    groups.outcome = failed()
    with pytest.raises(RankError, match="ValueError: boom"):
        notebook.run("%%torchrun -n 4 --expect KeyError\npass")


def test_an_expected_error_that_did_not_come_fails_the_cell(notebook, groups):
    groups.outcome = Outcome({0: "1"}, {"y": [1]}, 0.0)
    with pytest.raises(ValueError, match="the cell ran to its end"):
        notebook.run("%%torchrun -n 4 --expect ValueError --out y\npass")
    assert "y" not in notebook.names


def test_an_interrupt_is_never_expected(notebook, groups):
    groups.outcome = KeyboardInterrupt("the cell was interrupted")
    with pytest.raises(KeyboardInterrupt):
        notebook.run("%%torchrun -n 4 --expect KeyboardInterrupt\npass")
