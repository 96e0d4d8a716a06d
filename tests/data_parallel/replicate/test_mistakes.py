"""A sync with a mistake can be called again, and counts once."""

from contextlib import nullcontext

import pytest
import torch

from lt_core.base.errors import UserError
from lt_core.collectives import Mean, ring
from lt_core.comm import threads
from lt_core.compression import ErrorFeedback, MomentumCorrection, TopK, deep_gradient_compression
from lt_core.data_parallel.replicate import bucketed, flat, naive, overlapped
from tests.data_parallel.replicate.two_layers import backward, grads, two_layers

WAYS = {
    "naive": naive.replicate,
    "bucketed": bucketed.replicate,
    "overlapped": overlapped.replicate,
    "overlapped, ring": lambda model, comm: overlapped.replicate(model, comm, Mean(ring.schedule)),
    "overlapped, top-k": lambda model, comm: overlapped.replicate(model, comm, TopK(1.0)),
}
MISTAKES = {"no number": (([1, 2], [1, 2]), "UserError"), "on one rank": ((3, None), "Mismatch")}


def with_a_mistake(comm, replicate, mistake):
    """Of two steps the gradients, and what was said to the first sync."""
    model, found = two_layers(), []
    replica = replicate(model, comm)
    for step in range(2):
        model.zero_grad()
        backward(model, comm, step)
        if step == 0 and mistake:
            with pytest.raises(UserError) as said:
                replica.sync(samples=mistake[comm.rank])
            found.append(type(said.value).__name__)
        replica.sync(samples=2)
        found.append(grads(model))
    replica.close()
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", MISTAKES)
def test_a_sync_with_a_mistake_can_be_called_again(way, kind):
    """What was under way had landed, and stood in its bucket as if it were to be summed: no error, another mean."""
    mistake, error = MISTAKES[kind]
    right = threads.run(with_a_mistake, 2, (bucketed.replicate, None), 20)
    assert threads.run(with_a_mistake, 2, (WAYS[way], mistake), 20) == [[error, *found] for found in right]


def test_after_a_sync_with_a_mistake_close_gives_all_memory_back(monkeypatch):
    """What had landed and was never shown counted as what is still on the wire."""
    taken, back = [], []
    monkeypatch.setattr(flat, "allocate", lambda _, n, dtype: taken.append(n) or torch.empty(n, dtype=dtype))
    monkeypatch.setattr(flat, "free", lambda _, x: back.append(x.numel()))

    def closes(comm):
        model = two_layers()
        replica = overlapped.replicate(model, comm)
        backward(model, comm, 0)
        with pytest.raises(UserError, match="sync was told the samples of 1 ranks"):
            replica.sync(samples=None if comm.rank else 3)
        replica.close()

    threads.run(closes, 2, (), 20)
    assert taken == back == [8, 8]


def samples_beside_the_backward(comm, reducer):
    model = two_layers()
    replica, found = overlapped.replicate(model, comm, reducer()), []
    for _ in range(2):
        backward(model, comm, 0)
        try:
            replica.sync(samples=1)
        except UserError as error:
            found.append(str(error))
            replica.forget()
        found.append(grads(model))
    replica.close()
    return found


def test_a_memory_beside_the_backward_takes_no_samples():
    """They are told when its buckets have left: what waited of 64 samples was later divided by the next step's one."""
    for reducer, name in ((lambda: ErrorFeedback(TopK(0.5)), "ErrorFeedback"), (deep_gradient_compression, "Momentum")):
        for said, left, *again in threads.run(samples_beside_the_backward, 2, (reducer,), 20):
            assert said.startswith("what waits of a step is divided by the samples of that step, which are told when")
            assert f"got samples, and {name}" in said and said.endswith("try: bucketed.replicate")
            assert left == [None, None] and again == [said, left]
    first, second = threads.run(samples_beside_the_backward, 2, (lambda: TopK(1.0),), 20)
    assert first == second and first[0] == threads.run(samples_beside_the_backward, 2, (lambda: Mean(),), 20)[0][0]


def two_backwards(comm, replicate, windows):
    """Steps of two backwards, under momentum, the first in a window or not: what was said, and the last gradients."""
    model, said = two_layers(), ""
    replica = replicate(model, comm, MomentumCorrection(Mean(), 0.5, masking=False))
    for window in windows:
        model.zero_grad()
        with replica.no_sync() if window else nullcontext():
            backward(model, comm, 0)
        backward(model, comm, 0)
        try:
            replica.sync()
        except UserError as error:
            said = str(error)
            replica.forget()
    replica.close()
    return said, grads(model)


def test_momentum_beside_the_backward_takes_one_backward_a_step():
    """A second one was a second step of its velocity: 15 and half of it, where `bucketed` had 15."""
    said = (
        "a second gradient of 0.weight came when the first had left; got MomentumCorrection, whose momentum would take "
        "them for two steps; expected one backward a step beside which buckets leave; try: no_sync() for all backwards "
        "but the last, or bucketed.replicate"
    )
    right = threads.run(two_backwards, 2, (bucketed.replicate, [False]), 20)
    assert threads.run(two_backwards, 2, (bucketed.replicate, [True]), 20) == right
    assert threads.run(two_backwards, 2, (overlapped.replicate, [False, True]), 20) == [(said, g) for _, g in right]
