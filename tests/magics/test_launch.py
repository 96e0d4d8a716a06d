"""A function runs on the ranks that stand, which keep their variables; on new ones where too few stand."""

import pytest

from lt_core.base.cluster import Wire
from lt_core.base.errors import RankError
from lt_core.magics import ranks
from lt_core.magics.held import Held
from lt_core.magics.options import Options

pytestmark = pytest.mark.processes


def test_the_function_runs_on_the_notebooks_ranks_and_leaves_their_variables(real, capsys):
    real.run("%%torchrun\nkept = rank")

    def summed(comm, factor):
        print("hello")
        return comm.size, comm.rank * factor

    assert ranks.on_group(real.magic.held.group, summed, 2, 10) == [(2, 0), (2, 10)]
    assert ranks.on_group(real.magic.held.group, summed, 1, 10) == [(1, 0)]
    assert capsys.readouterr().out.split() == ["hello", "hello"]
    real.run("%%torchrun\nkept")
    assert capsys.readouterr().out.splitlines() == ["rank 0 -> 0", "rank 1 -> 1"]
    assert left(real, capsys) == ["ranks 0-1 -> []"]


def left(real, capsys):
    """What the ranks still hold of a launch."""
    real.run("%%torchrun\n[name for name in globals() if name.startswith('_lt')]")
    return capsys.readouterr().out.splitlines()


def test_its_error_is_the_rank_s_with_its_cause_and_nothing_is_left_of_it(real, capsys):
    def fails(comm):
        if comm.rank == 1:
            raise KeyError("mine")

    with pytest.raises(RankError, match="rank 1 failed first: KeyError: 'mine'") as caught:
        ranks.on_group(real.magic.held.group, fails, 2)
    assert isinstance(caught.value.__cause__, KeyError)
    assert left(real, capsys) == ["ranks 0-1 -> []"]


def test_without_a_notebook_no_ranks_stand():
    assert ranks.standing() is None


def test_ranks_on_slow_wires_are_not_taken(groups):
    held = Held(lambda: "ring.ipynb", groups)
    for shape, plain in ((None, True), (Wire("shaped", 1e-3, 1e6), False)):
        group = held.take(Options()._replace(size=2, shape=shape), Quiet())
        assert (held.plain() is group) is plain


class Quiet:
    """A screen that nobody looks at."""

    def show(self, line):
        """Nothing."""

    def progress(self, text):
        """Nothing."""
