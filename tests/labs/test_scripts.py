"""The scripts that labs hand out: the same numbers on any number of ranks, and with a reader's own model."""

import importlib.util

import pytest

from labs.build import LABS
from lt_core.collectives import Mean
from lt_core.compression import ErrorFeedback, PowerSGD, power_sgd
from lt_core.models.gpt import gpt
from lt_core.teaching import run_script

DDP, COMPRESS = LABS / "scripts" / "ddp.py", LABS / "scripts" / "compress.py"
MINE = """
import torch
def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Embedding(256, 8), torch.nn.Linear(8, 256))
"""


def script(path):
    spec = importlib.util.spec_from_file_location("script", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def losses(comm, path):
    return list(script(path).train(comm, steps=3))


def remembering():
    return ErrorFeedback(PowerSGD(2))


def steps(comm, path, make):
    return list(script(path).train(comm, make(), steps=3))


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


@pytest.mark.parametrize("name", ["ddp", "compress"])
def test_a_model_is_a_file_and_a_name(name):
    with pytest.raises(SystemExit) as left:
        script(LABS / "scripts" / f"{name}.py").made("mine.py")
    assert str(left.value) == "--model takes FILE:NAME, such as mine.py:make; got mine.py"


def test_compress_without_a_compressor_is_ddp(ranks):
    plain = ranks(2).run(losses, str(DDP))
    for wanted, found in zip(plain, ranks(2).run(steps, str(COMPRESS), Mean)):
        assert [step.loss for step in found] == pytest.approx(wanted, rel=1e-5)


def test_compress_sends_the_bytes_of_its_method_s_law_and_learns(ranks):
    shapes = [p.shape for p in gpt().parameters()]
    for rank, found in enumerate(ranks(2).run(steps, str(COMPRESS), remembering)):
        law = power_sgd.law_bytes(2, shapes, 2, itemsize=4, rank=rank)
        assert [step.sent_bytes for step in found[1:]] == [law, law]  # in the first, ranks agree what they bring
        assert found[-1].loss < found[0].loss


@pytest.mark.processes
def test_compress_under_torchrun_on_a_wire():
    options = ("--method", "power_sgd", "--rank", "1", "--wire", "rack", "--steps", "2")
    first, second = run_script(COMPRESS, 2, *options)
    law = power_sgd.law_bytes(2, [p.shape for p in gpt().parameters()], 1, itemsize=4, rank=0)
    assert f", {law:,} bytes, " in first.splitlines()[1] and len(first.splitlines()) == 2 and second == ""
