"""A notebook's shell without a kernel, groups that only write down what they are asked, and one group that is real."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Any
from traitlets.config import Config

from lt_core import magics
from lt_core.comm.group import Outcome
from lt_core.magics.torchrun import Torchrun

QUIET = Config({"HistoryManager": {"enabled": False}})


class Notebook:
    """A shell and its `%%torchrun`; `run` gives what a cell printed, or raises what it raised."""

    def __init__(self, shell: InteractiveShell, magic: Torchrun) -> None:
        self.shell, self.magic = shell, magic
        self.names = shell.user_ns

    def run(self, text: str) -> None:
        """Run a cell as a notebook would. Raises its error."""
        self.shell.run_cell(text, store_history=False).raise_error()


class Fake:
    """A group whose cells give `outcome`, or raise it; it keeps what it was asked."""

    made: list["Fake"]
    outcome: Outcome | BaseException = Outcome({}, {}, 0.0)
    shown = ()
    where = ""

    def __init__(self, size, backend="auto", owner="", shape=None):
        self.size, self.backend, self.owner, self.shape = size, "gloo", owner, shape
        self.alive, self.cells, self.log = False, [], []
        type(self).made.append(self)

    def run(self, cell, show, progress):
        self.alive = True
        self.cells.append(cell)
        for line in self.shown:
            show(line)
        if self.where:
            progress(self.where)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    def restart(self):
        self.log.append("restart")

    def stop(self):
        self.log.append("stop")
        self.alive = False


@pytest.fixture
def groups():
    """The class of groups that only write down; `.made` has those that were made."""
    return type("Group", (Fake,), {"made": []})


@pytest.fixture
def shell(tmp_path_factory) -> InteractiveShell:
    """A shell of its own, which is not the one that `get_ipython` gives."""
    return InteractiveShell(config=QUIET, ipython_dir=str(tmp_path_factory.mktemp("ipython")))


@pytest.fixture
def notebook(shell, groups) -> Notebook:
    """A terminal's shell whose ranks are not real."""
    magic = Torchrun(shell, groups)
    shell.register_magics(magic)
    return Notebook(shell, magic)


@pytest.fixture
def kernel(notebook) -> list[dict]:
    """`notebook` as a kernel has it: what is displayed can be read here."""
    notebook.shell.add_traits(kernel=Any())
    notebook.shell.display_pub = CapturingDisplayPublisher()
    return notebook.shell.display_pub.outputs


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> Iterator[Notebook]:
    """A shell with one real group of 2 ranks for a whole module; no other notebook of this user is in its way."""
    with tempfile.TemporaryDirectory(prefix="lt-", dir="/tmp") as runtime, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", runtime)
        shell = InteractiveShell(config=QUIET, ipython_dir=str(tmp_path_factory.mktemp("ipython")))
        magics.load_ipython_extension(shell)
        magic = shell.magics_manager.registry[magics.NAME]
        notebook = Notebook(shell, magic)
        notebook.run("%%torchrun -n 2\npass")
        yield notebook
        magics.unload_ipython_extension(shell)
        assert list(Path(runtime, "lt_core").iterdir()) == []
