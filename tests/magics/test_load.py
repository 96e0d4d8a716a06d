"""Without its magic a lab stops at its first cell: loading is an import and a call, which fail loudly."""

import pytest

from lt_core import magics
from lt_core.base.errors import UserError


def known(shell):
    return [shell.find_magic("torchrun", kind) is not None for kind in ("line", "cell")]


@pytest.fixture
def here(shell, monkeypatch):
    """`shell` is the one that `get_ipython` gives."""
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: shell)
    return shell


def test_outside_a_notebook_loading_fails():
    with pytest.raises(
        UserError, match="there is no notebook here; expected a cell of a notebook, or IPython; try: make"
    ):
        magics.load()


def test_loading_makes_the_magic_known(here):
    assert known(here) == [False, False]
    here.run_cell("from lt_core import magics; magics.load()").raise_error()
    assert known(here) == [True, True]


def test_loading_again_keeps_the_ranks(here):
    magics.load()
    first = here.magics_manager.registry[magics.NAME]
    magics.load()
    here.run_cell("%load_ext lt_core.magics").raise_error()
    assert here.magics_manager.registry[magics.NAME] is first


def test_load_ext_loads_and_unloads(here, groups):
    here.run_cell("%load_ext lt_core.magics").raise_error()
    magic = here.magics_manager.registry[magics.NAME]
    magic.held._make = groups
    here.run_cell("%%torchrun -n 2\npass").raise_error()
    here.run_cell("%unload_ext lt_core.magics").raise_error()
    assert groups.made[0].log == ["stop"] and known(here) == [False, False]
    here.run_cell("%load_ext lt_core.magics").raise_error()
    assert known(here) == [True, True] and here.magics_manager.registry[magics.NAME] is not magic
