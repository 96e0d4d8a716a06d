"""A learner whose file nobody else has, and a notebook in which what is displayed can be read."""

from types import SimpleNamespace

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from lt_core.teaching import Learner


@pytest.fixture
def learner(tmp_path):
    """A learner who has said nothing yet."""
    return Learner(tmp_path / "mine.jsonl")


@pytest.fixture
def displayed(monkeypatch):
    """What IPython's own display sends where a kernel lives: a list of {data, metadata, ...}."""
    kernel = SimpleNamespace(kernel=object(), display_pub=CapturingDisplayPublisher())
    monkeypatch.setattr("IPython.core.getipython.get_ipython", lambda: kernel)
    monkeypatch.setattr(InteractiveShell, "initialized", lambda: True)
    monkeypatch.setattr(InteractiveShell, "instance", lambda: kernel)
    return kernel.display_pub.outputs
