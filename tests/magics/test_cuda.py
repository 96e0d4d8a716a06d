"""Where something has initialised CUDA in the kernel, the next cell names the import or the line, once."""

import sys

import pytest
import torch

from lt_core.magics.cuda import ADVICE, Cuda


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


class Screen:
    def __init__(self):
        self.texts = []

    def show(self, line):
        self.texts.append(line.text)


def told(cuda):
    screen = Screen()
    cuda.tell(screen)
    return screen.texts


def test_nothing_is_said_while_nobody_has_begun(begun):
    assert told(Cuda()) == []


def test_the_line_of_a_cell_is_named_once(begun, shell):
    cuda = Cuda()
    shell.run_cell("import torch\n\ntorch.cuda.init()  # mine").raise_error()
    (text,) = told(cuda)
    assert text == f"CUDA was initialised in this kernel by line 3 of a cell, `torch.cuda.init()  # mine`; {ADVICE}"
    assert told(cuda) == []


def test_the_import_is_named_not_what_it_imports(begun, shell, tmp_path, monkeypatch):
    """Some import had initialised CUDA, a launcher's processes failed deep inside, and nobody could find which."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "outer_cuda.py").write_text("import math\nimport inner_cuda\n")
    (tmp_path / "inner_cuda.py").write_text("import torch\ndef f():\n    torch.cuda.init()\nf()\n")
    cuda = Cuda()
    shell.run_cell("from outer_cuda import math").raise_error()
    for name in ("outer_cuda", "inner_cuda"):
        monkeypatch.delitem(sys.modules, name)
    (text,) = told(cuda)
    assert text.startswith(
        f"CUDA was initialised in this kernel by `import outer_cuda` ({tmp_path / 'outer_cuda.py'}, line 2)"
    )


def test_what_was_before_is_said_to_be_before(begun):
    begun()
    assert told(Cuda()) == [f"CUDA was initialised in this kernel before %%torchrun was loaded; {ADVICE}"]


def test_torch_still_tells_who_begins():
    """The private door that this stands on is there, and calls at the right moment."""
    from lt_core.base import torch_compat

    queued = torch.cuda._queued_calls
    call = [].append
    torch_compat.when_cuda_begins(call)
    assert (torch.cuda.is_initialized() and not queued) or queued.pop()[0] is call
