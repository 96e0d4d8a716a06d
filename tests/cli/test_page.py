"""What commands print stays readable: grids that fit, errors as one text with code 1, data never taken for markup."""

import io

import pytest
import typer
from rich.console import Console

from lt_core.base.errors import RankError, UserError
from lt_core.cli import page
from lt_core.collectives import ring


def test_a_grid_that_fits_is_one_block_with_numbered_columns():
    assert page.in_width(ring.schedule(2).grid(), 80) == (
        "   0                1\n"  #
        "0: 0SEND0>1+1ADD0<1 1SEND1>1+0COPY1<1\n"
        "1: 1SEND0>0+0ADD0<0 0SEND1>0+1COPY1<0"
    )


@pytest.mark.parametrize("size", [2, 4, 8])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_grid_in_blocks_fits_and_loses_nothing(size, width):
    grid = ring.schedule(size).grid()
    shown = page.in_width(grid, width)
    assert max(map(len, shown.splitlines())) <= width
    for line in grid.splitlines():
        head, *cells = line.split()
        mine = [found.split()[1:] for found in shown.splitlines() if found.startswith(head)]
        assert [cell for block in mine for cell in block] == cells


def test_a_column_wider_than_the_page_stands_alone():
    assert page.in_width("0: 0SEND0>1*4\n1: .", 4).splitlines()[1] == "0: 0SEND0>1*4"


def test_a_grid_without_columns_stays_as_it_is():
    assert page.in_width(ring.schedule(1).grid(), 80) == "0:"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UserError("no room", "3", "4"), "ltlab ring: no room; got 3; expected 4\n"),
        (RankError(2, "ValueError", "late"), "ltlab ring: RankError: rank 2 failed first: ValueError: late\n"),
        (OSError(28, "No space left on device"), "ltlab ring: OSError: [Errno 28] No space left on device\n"),
    ],
)
def test_a_failure_is_one_text_on_stderr_and_code_1(error, text, capsys):
    with pytest.raises(typer.Exit) as ended, page.failures("ring"):
        raise error
    assert ended.value.exit_code == 1
    assert capsys.readouterr() == ("", text)


def test_an_error_of_our_own_is_not_hidden():
    with pytest.raises(AssertionError), page.failures("ring"):
        raise AssertionError("a fault of this package")


def test_brackets_in_data_are_data(capsys):
    page.say(page.console(), "ranks [1] wait for [bold]")
    assert capsys.readouterr().out == "ranks [1] wait for [bold]\n"


def test_a_path_is_never_cut():
    out = Console(file=io.StringIO(), width=20, highlight=False, markup=False)
    page.say(out, "x" * 50)
    assert out.file.getvalue() == "x" * 50 + "\n"


def test_a_table_has_frames_on_a_terminal_only():
    for terminal in (True, False):
        out = Console(file=io.StringIO(), force_terminal=terminal, width=80, color_system=None)
        rows = page.table(out, "name", ">value")
        rows.add_row("a", "10")
        out.print(rows)
        assert ("─" in out.file.getvalue()) == terminal
