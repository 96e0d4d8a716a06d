"""Where something has initialised CUDA in the launching process, ranks start all the same, and it is named, once."""

import importlib.util
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from lt_core.base import torch_compat
from lt_core.comm import cuda
from lt_core.comm.cuda import ADVICE, Watch, culprit

SINCE = "before all this"
INNER = """
import torch
def begin():
    for call, _ in torch.cuda._queued_calls:  # as torch itself does, where there is a GPU
        call()
begin()
"""
SCRIPT = """
import sys, warnings
from lt_core import launch
assert "torch" not in sys.modules
import outer_cuda
for _ in range(2):
    print(launch(lambda comm: comm.rank, 1, backend="gloo"))
"""


@pytest.fixture
def begun(monkeypatch):
    """CUDA as torch begins it: those who asked to hear of it are called, by whoever begins."""
    calls, state = [], {"on": False}

    def lazy_call(call):
        return call() if state["on"] else calls.append(call)

    def begin():
        state["on"] = True
        for call in calls:
            call()

    monkeypatch.setattr(torch.cuda, "_lazy_call", lazy_call)
    monkeypatch.setattr(torch.cuda, "init", begin)
    return begin


@pytest.fixture
def run():
    """Run a cell's text, as a notebook would."""
    return lambda text: InteractiveShell().run_cell(text, store_history=False).raise_error()


def told(watch):
    texts = []
    watch.tell(texts.append)
    return texts


def test_nothing_is_said_while_nobody_has_begun(begun):
    assert told(Watch(SINCE)) == []


def test_the_line_of_a_cell_is_named_once(begun, run):
    watch = Watch(SINCE)
    run("import torch\n\ntorch.cuda.init()  # mine")
    (text,) = told(watch)
    assert text == f"CUDA was initialised in this process by line 3 of a cell, `torch.cuda.init()  # mine`; {ADVICE}"
    assert told(watch) == []


def test_the_import_is_named_not_what_it_imports(begun, run, tmp_path, monkeypatch):
    """Some import had initialised CUDA, a launcher's processes failed deep inside, and nobody could find which."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "outer_cuda.py").write_text("import math\nimport inner_cuda\n")
    (tmp_path / "inner_cuda.py").write_text("import torch\ndef f():\n    torch.cuda.init()\nf()\n")
    watch = Watch(SINCE)
    run("from outer_cuda import math")
    for name in ("outer_cuda", "inner_cuda"):
        monkeypatch.delitem(sys.modules, name)
    (text,) = told(watch)
    assert text.startswith(
        f"CUDA was initialised in this process by `import outer_cuda` ({tmp_path / 'outer_cuda.py'}, line 2)"
    )


def test_what_was_before_is_said_to_be_before(begun):
    begun()
    assert told(Watch(SINCE)) == [f"CUDA was initialised in this process {SINCE}; {ADVICE}"]


def test_where_torch_comes_later_it_is_watched_from_then_on(begun, monkeypatch):
    """And every import finds what it would have found: the finder behind the watch was once passed over."""
    found = []
    behind = SimpleNamespace(find_spec=lambda name, *_: found.append(name))
    monkeypatch.setattr(sys, "meta_path", [behind])
    monkeypatch.setattr(torch_compat, "knows_cuda", lambda: False)
    watch = Watch(SINCE)
    assert importlib.util.find_spec("no_module") is None
    monkeypatch.setattr(torch_compat, "knows_cuda", lambda: True)
    assert importlib.util.find_spec("none_either") is None
    assert found == ["no_module", "none_either"]
    begun()
    assert f"`{begun.__name__}" not in watch.by and "by line" in watch.by


def test_where_nobody_but_torch_calls_its_line_is_named():
    """As in a thread of its own. An error here would be raised by the initialisation itself."""
    code = SimpleNamespace(co_name="begin", co_filename="torch/own.py")
    frame = SimpleNamespace(f_globals={"__name__": "torch.own"}, f_code=code, f_lineno=7, f_back=None)
    assert culprit(frame) == "by line 7 of torch/own.py, ``"


@pytest.mark.processes
def test_launch_works_and_names_the_import_once(tmp_path):
    """The import comes after lt_core's and is the first to import torch."""
    (tmp_path / "outer_cuda.py").write_text("import inner_cuda\n")
    (tmp_path / "inner_cuda.py").write_text(INNER)
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "[0]\n[0]\n"), done.stderr
    place = f"by `import outer_cuda` ({tmp_path / 'outer_cuda.py'}, line 1)"
    assert done.stderr.count(f"UserWarning: CUDA was initialised in this process {place}; {ADVICE}") == 1
    assert "script.py:7: UserWarning" in done.stderr, "the line that launches"


def test_a_process_has_one_watch_from_the_launchs_import_on():
    assert cuda.watched() is cuda.watched()


def test_torch_still_tells_who_begins():
    """The private door that this stands on is there, and calls at the right moment."""
    queued = torch.cuda._queued_calls
    call = [].append
    assert torch_compat.knows_cuda()
    torch_compat.when_cuda_begins(call)
    assert (torch.cuda.is_initialized() and not queued) or queued.pop()[0] is call
