"""Hogwild: one rank is SGD, disjoint supports lose nothing in any order, and a dense problem does lose updates."""

import errno
import os
from functools import partial

import pytest
import torch
from torch import nn

from lt_core.base.errors import RankError, UserError
from lt_core.base.trace import Trace
from lt_core.comm import threads
from lt_core.data_parallel import hogwild
from lt_core.data_parallel.hogwild import lost, train
from lt_core.views.staleness import version_strip
from tests.data_parallel.problems import flat, loss, mlp, serial

ROWS, DIM = 24, 3


class Table(nn.Module):
    """Rows of which a rank looks at its own only; their gradients are sparse."""

    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(ROWS, DIM, sparse=True, dtype=torch.float64)
        self.rows.weight.data = torch.arange(ROWS * DIM, dtype=torch.float64).view(ROWS, DIM)


def own_rows(size):
    def of(model, rank, step):
        rows = torch.arange(rank, ROWS, size)[step % 2 :]
        return (model.rows(rows) ** 2).sum() / 2

    return of


def test_one_rank_is_sgd():
    (ended,) = threads.run(lambda comm: train(comm, mlp(), loss, 0.05, 6), 1)
    assert torch.equal(ended.weights, serial(partial(torch.optim.SGD, lr=0.05), 6))
    assert [m.value for m in ended.trace.marks] == [
        {"clock": k, "server": 0, "read": k, "version": k + 1, "written": k + 1} for k in range(6)
    ]


def test_its_marks_are_drawn():
    """The view of stale gradients shows a run without a server, too: a bar a gradient, of every rank."""
    ended = threads.run(lambda comm: train(comm, mlp(), loss, 0.05, 6), 2)
    trace = Trace.merge([one.trace for one in ended])
    shown = version_strip(trace)
    assert "A bar a gradient, a lane for each of 2 ranks" in shown.words
    values = [(m.rank, *(m.value[key] for key in ("clock", "read", "version"))) for m in trace.marks]
    bars = sum(len(bar.x) for bar in shown.figure.data)
    assert len(values) == bars == 12 and {version for *_, version in values} <= set(range(1, 13))


def disjoint(comm):
    return train(comm, Table(), own_rows(comm.size), 0.25, 8).weights


def test_disjoint_supports_lose_nothing_whatever_the_order(ranks):
    together = ranks(3).run(disjoint)
    for order in ([0, 1, 2], [2, 0, 1]):
        model = Table()
        for rank in order:
            for step in range(8):
                model.zero_grad()
                own_rows(3)(model, rank, step).backward()
                grad = model.rows.weight.grad.coalesce()
                model.rows.weight.data.index_add_(0, grad.indices()[0], grad.values(), alpha=-0.25)
        assert all(torch.equal(one, flat(model)) for one in together)


class Ones(nn.Module):
    """A loss that is the sum of its weights: every gradient is one everywhere, every write touches every weight."""

    def __init__(self, elements):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(elements, dtype=torch.float64))


def dense(comm, elements, steps):
    ended = train(comm, Ones(elements), lambda model, rank, step: model.w.sum(), 1.0, steps)
    return lost(ended.weights, 0.0, 1.0, steps * comm.size), ended.trace.marks


@pytest.mark.processes
def test_a_dense_problem_loses_updates_and_each_rank_sees_the_others(processes):
    """No lock: counted on real processes, again until some are lost, which one round nearly always does."""
    for _ in range(20):
        answers = processes(3).run(dense, 100_000, 60)
        missing, marks = answers[0][0], [m.value for _, marks in answers for m in marks]
        assert 0 <= missing < 3 * 60 * 100_000
        if missing:
            break
    assert missing > 0
    assert max(m["written"] - 1 - m["read"] for m in marks) > 0  # somebody wrote between its reading and its writing


def test_writes_one_after_the_other_lose_nothing():
    """What the count of lost updates proves: without a second rank it is zero."""
    ((missing, _),) = threads.run(dense, 1, (1000, 50))
    assert missing == 0


def test_another_device_shares_no_memory():
    words = "Hogwild needs memory that all ranks share; got a model on meta; expected one on the CPU"
    with pytest.raises(RankError, match=words) as caught:
        threads.run(lambda comm: train(comm, nn.Linear(1, 1, device="meta"), loss, 0.1, 1), 1)
    assert type(caught.value.__cause__) is UserError


def spoils(model, rank, step):
    return loss(model, rank, step) * (float("nan") if (rank, step) == (1, 2) else 1)


@pytest.mark.parametrize("model", [mlp, Table])
def test_a_gradient_that_is_not_finite_is_in_no_weights(model):
    of = spoils if model is mlp else lambda model, rank, step: own_rows(2)(model, rank, step) * float("nan")
    models = [model(), model()]
    with pytest.raises(RankError, match=r"rank .'s gradient of clock . would spoil the weights of all; got nan"):
        threads.run(lambda comm: train(comm, models[comm.rank], of, 0.05, 4), 2)
    assert all(flat(one).isfinite().all() for one in models)


def test_a_full_disk_is_told_before_anything_is_written(tmp_path, monkeypatch):
    class Full:
        def __init__(self, handle, mode):
            os.close(handle)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            return None

        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(hogwild.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(hogwild, "open", Full, raising=False)
    words = "no room for weights that all ranks share; got No space left on device; expected 592 bytes in "
    with pytest.raises(RankError, match=words):
        threads.run(lambda comm: train(comm, mlp(), loss, 0.05, 1), 2)
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(hogwild.tempfile, "tempdir", str(tmp_path))
    threads.run(lambda comm: train(comm, mlp(), loss, 0.05, 1), 2)
    assert list(tmp_path.iterdir()) == []


def test_no_file_is_left_where_the_others_never_heard_of_it(tmp_path, monkeypatch):
    def fn(comm):
        comm.abort("enough")
        return train(comm, mlp(), loss, 0.05, 1)

    monkeypatch.setattr(hogwild.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(RankError, match="enough"):
        threads.run(fn, 1)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_step_and_ranks_with_different_models():
    """Two models laid over the same weights: each rank wrote into what were other parameters of the other's."""
    for rate, steps in ((float("nan"), 1), (0.0, 1), (0.1, -1)):
        with pytest.raises(RankError, match=f"makes steps along the gradient; got {steps} of {rate}; expected 0 or"):
            threads.run(lambda comm, rate=rate, steps=steps: train(comm, mlp(), loss, rate, steps), 1)
    with pytest.raises(RankError, match="different parameters; got as number 0: rank 0 has weight") as caught:
        threads.run(lambda comm: train(comm, nn.Linear(2 + comm.rank, 1), loss, 0.1, 1), 2)
    assert caught.value.kind == "Mismatch"
