"""A step that went wrong is mended or dropped, never counted twice: a sync with a mistake, a reducer that raised."""

import pytest
import torch
from torch import nn

from lt_core.base.errors import UserError
from lt_core.collectives import Mean, ring
from lt_core.comm import threads
from lt_core.compression import ErrorFeedback, TopK, deep_gradient_compression
from lt_core.data_parallel.replicate import bucketed, naive, overlapped

WAYS = {
    "naive": naive.replicate,
    "bucketed": bucketed.replicate,
    "overlapped": overlapped.replicate,
    "overlapped, ring": lambda model, comm: overlapped.replicate(model, comm, Mean(ring.schedule)),
    "overlapped, top-k": lambda model, comm: overlapped.replicate(model, comm, TopK(1.0)),
}
MISTAKES = {"no number": (([1, 2], [1, 2]), "UserError"), "on one rank": ((3, None), "Mismatch")}


def two_layers():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False)).double()
    for p in model.parameters():
        p.data = torch.tensor([[1.0, 2.0], [4.0, 8.0]], dtype=torch.float64)
    return model


def backward(model, comm, step):
    x = torch.tensor([[1.0, 3.0]], dtype=torch.float64) * (comm.rank + 1 + 10 * step)
    model(x).sum().backward()


def grads(model):
    return [None if p.grad is None else p.grad.tolist() for p in model.parameters()]


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


class FailsOnce:
    """A reducer that raises in one call, on all ranks."""

    def __init__(self, inner, call):
        self.inner, self.left = inner, call

    def reduce(self, grads, comm):
        self.left -= 1
        if not self.left:
            raise FloatingPointError("no mean today")
        return self.inner.reduce(grads, comm)

    def state_dict(self):
        return self.inner.state_dict()


MEMORIES = {
    "error feedback": lambda inner: ErrorFeedback(inner),
    "dgc": lambda inner: deep_gradient_compression(0.25) if isinstance(inner, TopK) else dgc_around(inner),
}


def dgc_around(inner):
    reducer = deep_gradient_compression(0.25)
    reducer.inner = inner
    return reducer


def skipping(comm, way, reducer, skip):
    """The gradients of three steps with a bucket a layer, the second of which `skip` ends; what waits then."""
    model, found = two_layers(), []
    replica = way.replicate(model, comm, reducer(), bucket_bytes=32)
    for step in range(3):
        model.zero_grad()
        if step != 1 or skip:
            backward(model, comm, step)
            found += skip(replica) if step == 1 else [replica.sync()]
            found.append(grads(model))
    state = replica.state_dict()
    waits = {name: x.tolist() for key in ("residual", "waiting", "velocity") for name, x in state.get(key, {}).items()}
    replica.close()
    return found, waits


def forgets(replica):
    replica.forget()
    return ["forgotten"]


def fails(replica):
    with pytest.raises(FloatingPointError, match="no mean today"):
        replica.sync()
    return ["failed"]


def fails_and_forgets(replica):
    """Nothing is left to be raised again."""
    return [*fails(replica), *forgets(replica)]


@pytest.mark.parametrize("way", [bucketed, overlapped])
@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("skip", [forgets, fails, fails_and_forgets])
def test_a_step_that_is_dropped_takes_nothing_of_what_waits(way, memory, skip):
    """What a bucket had sent of its memory was lost; and what a reducer had raised once was raised for ever. Beside
    gradients stood the means of buckets that came before."""

    def of(inner):
        return lambda: MEMORIES[memory](inner())

    failing = skip is not forgets
    without = threads.run(skipping, 2, (bucketed, of(lambda: TopK(0.25)), None), 20)
    inner = (lambda: FailsOnce(TopK(0.25), 4)) if failing else (lambda: TopK(0.25))  # the second bucket of step 1
    for (found, waits), (right, same) in zip(threads.run(skipping, 2, (way, of(inner), skip), 20), without):
        assert [one for one in found if one in ("failed", "forgotten")] == {
            forgets: ["forgotten"],
            fails: ["failed"],
            fails_and_forgets: ["failed", "forgotten"],
        }[skip]
        assert [None, None] in found  # the step that was dropped
        assert [one for one in found if one not in ("failed", "forgotten", [None, None])] == right
        assert waits == same and any(any(map(any, x)) for x in waits.values())


def failing_once(comm, replicate):
    """Two layers of samples that are summed; the reducer raises for the second, and the backward is run anew."""
    model = two_layers()
    replica = replicate(model, comm, FailsOnce(Mean(), 2))
    backward(model, comm, 0)
    with pytest.raises(FloatingPointError, match="no mean today"):
        replica.sync(samples=4)
    left = grads(model)
    backward(model, comm, 0)
    replica.sync(samples=4)
    replica.close()
    return left, grads(model)


def in_buckets_of_a_layer(model, comm, reducer):
    return bucketed.replicate(model, comm, reducer, bucket_bytes=32)


@pytest.mark.parametrize("replicate", [naive.replicate, in_buckets_of_a_layer])
def test_where_a_reducer_fails_nothing_is_left_to_be_summed_again(replicate):
    """The first layer had its mean already: the next backward was added to it, and all that summed once more."""
    right = threads.run(with_a_mistake, 2, (naive.replicate, None), 20)[0][0]
    halved = [[[x / 2 for x in row] for row in g] for g in right]  # 4 samples, not 2
    assert threads.run(failing_once, 2, (replicate,), 20) == [([None, None], halved)] * 2


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
