"""The scripts that labs hand out: the same numbers on any number of ranks, and with a reader's own model."""

import importlib.util

import pytest

from labs.build import LABS
from lt_core.teaching import run_script

DDP = LABS / "scripts" / "ddp.py"
MINE = """
import torch
def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Embedding(256, 8), torch.nn.Linear(8, 256))
"""


def losses(comm, path):
    spec = importlib.util.spec_from_file_location("script", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return list(script.train(comm, steps=3))


@pytest.mark.parametrize("size", [2])
def test_ddp_trains_as_one_rank_does(ranks, size):
    (plain,) = ranks(1).run(losses, str(DDP))
    for found in ranks(size).run(losses, str(DDP)):
        assert found == pytest.approx(plain, rel=1e-5)
    assert plain[0] == pytest.approx(5.55, abs=0.1) and plain[-1] < plain[0]


@pytest.mark.processes
def test_ddp_under_torchrun_with_a_model_of_one_s_own(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    first, second = run_script(DDP, 2, "--steps", "2", "--model", f"{tmp_path / 'mine.py'}:make")
    assert first.splitlines()[0].startswith("step   0: loss 5.") and len(first.splitlines()) == 2 and second == ""
