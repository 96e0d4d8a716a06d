"""Clause 1: a group is started once and stays between cells, with all its variables."""

import pytest

from lt_core.base.errors import UserError
from lt_core.comm.group import Cell, Group

pytestmark = pytest.mark.processes


def test_restart_gives_new_ranks_which_find_four_names_and_nothing_else(group, cell):
    cell("kept = 1")
    before = group.status().pids
    group.restart()
    assert not set(before) & set(group.status().pids)
    names = "sorted(name for name in dir() if not name.startswith('__'))"
    assert cell(names).values == dict.fromkeys((0, 1), "['comm', 'lt', 'rank', 'torch']")
    found = cell("(rank, comm.rank, comm.size, comm.backend, torch.__name__, lt.__name__, __name__)").values
    assert found == {r: f"({r}, {r}, 2, 'gloo', 'torch', 'lt_core', '__main__')" for r in (0, 1)}


def test_what_a_cell_makes_the_next_one_finds(group, cell):
    assert cell("import os\nkept = [rank, os.getpid()]").values == {}
    before = group.status()
    again = cell("kept.append('again')\nkept").values
    assert again == {rank: f"[{rank}, {pid}, 'again']" for rank, pid in enumerate(before.pids)}
    assert group.status() == before and before.alive


def test_ranks_compute_together_cell_after_cell(cell):
    cell("x = torch.tensor([rank + 1.0])")
    for total in (3.0, 6.0, 12.0):
        assert cell("comm.all_reduce(x)\nx.item()").values == {0: str(total), 1: str(total)}


def test_the_last_expression_is_the_value(cell):
    assert cell("1; 2").values == {0: "2", 1: "2"}
    assert cell("x = 3").values == {}
    assert cell("None").values == {}
    assert cell("rank or None").values == {1: "1"}
    assert cell("4;").values == {}
    assert cell("").values == {}
    assert cell("for i in range(3):\n    i").values == {}
    assert cell("'x' * 100_000").values[0].endswith("xxx ... (100 kB in all)")


def test_a_cell_is_a_script_of_its_own(cell):
    """What it defines has the names of a script's, and our own compiler flags do not leak into it."""
    cell("import pickle\nclass Mine: pass\ndef f(x: int): pass")
    assert cell("type(pickle.loads(pickle.dumps(Mine()))) is Mine, f.__annotations__['x'] is int").values == {
        0: "(True, True)", 1: "(True, True)"
    }  # fmt: skip
    assert cell("import sys\nsys.exit(0)").values == {}
    assert cell("from __future__ import annotations\ndef g(x: int): pass\ng.__annotations__['x']").values[0] == "'int'"


def test_some_ranks_run_a_cell(cell):
    seen = cell("rank * 10", ranks=(1,))
    assert seen.values == {1: "10"}
    assert cell("rank", ranks=(0, 1, 1)).values == {0: "0", 1: "1"}
    refused = cell("rank", ranks=(1, 2)).error
    assert isinstance(refused, UserError)
    assert str(refused) == "the cell's ranks are not all there; got [1, 2]; expected some of 0 to 1"
    assert isinstance(cell("rank", ranks=()).error, UserError)


def test_a_syntax_error_reaches_no_rank(group, cell):
    seen = cell("print('never')\nreturn 5", name="<cell 7>")
    assert isinstance(seen.error, SyntaxError)
    assert (seen.error.filename, seen.error.lineno, seen.error.text) == ("<cell 7>", 2, "return 5")
    assert seen.lines == [] and cell("'here'").values[1] == "'here'"


@pytest.mark.parametrize(
    ("size", "backend", "text"),
    [
        (0, "auto", "a world needs ranks; got 0; expected at least 1"),
        (2, "threads", "a group's ranks are processes; got 'threads'; expected auto, gloo, shared_memory or nccl"),
        (2, "mpi", "there is no such back end; got 'mpi'; expected auto, threads, gloo, shared_memory, nccl"),
    ],
)
def test_bad_input_starts_nothing(size, backend, text):
    with pytest.raises(UserError) as caught:
        Group(size, backend=backend)
    assert str(caught.value) == text


def test_the_limit_of_a_wait_is_the_cells_own_in_every_group(cell):
    cell("pair = comm.subset([1, 0])\nown = pair.subset([1, 0])", timeout_s=50)
    told = "comm.timeout_s, pair.timeout_s, own.timeout_s, comm.subset([0, 1]).timeout_s"
    assert cell(told, timeout_s=7).values == dict.fromkeys((0, 1), str((7,) * 4))
    cell("del pair, own")


def test_torchs_own_limit_is_a_day(cell):
    """Ours is on each wait; torch's would end what lies begun in a notebook."""
    text = "from torch.distributed import distributed_c10d as c10d\n"
    text += "c10d._get_default_group()._get_backend(torch.device('cpu')).options._timeout.total_seconds()"
    assert cell(text).values == dict.fromkeys((0, 1), "86400.0")


def test_a_group_that_was_never_started_has_nothing_to_stop():
    idle = Group(2, backend="gloo")
    assert not idle.alive and not idle.status().alive
    idle.stop()
    with pytest.raises(SyntaxError):
        idle.run(Cell("("), print)
    assert not idle.alive
