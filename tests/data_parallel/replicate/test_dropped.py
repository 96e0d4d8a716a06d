"""A step that a reducer ended, or that is forgotten, is dropped: nothing of it counts again, and nothing is lost."""

import pytest

from lt_core.collectives import Mean
from lt_core.comm import threads
from lt_core.compression import ErrorFeedback, MomentumCorrection, TopK
from lt_core.data_parallel.replicate import bucketed, naive, overlapped
from tests.data_parallel.replicate.two_layers import backward, grads, two_layers


class FailsOnce:
    """A reducer that raises in one call, on all ranks; in call 0 never."""

    def __init__(self, inner, call):
        self.inner, self.left = inner, call

    def reduce(self, grads, comm):
        self.left -= 1
        if not self.left:
            raise FloatingPointError("no mean today")
        return self.inner.reduce(grads, comm)

    def state_dict(self):
        return self.inner.state_dict()


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


# the reducer's calls of step 1 are 3 and 4
SKIPS = [(way, skip, call) for way in (bucketed, overlapped) for skip, call in ((fails, 3), (fails_and_forgets, 4))]


@pytest.mark.parametrize("memory", [ErrorFeedback, MomentumCorrection])
@pytest.mark.parametrize(("way", "skip", "call"), [*SKIPS, (overlapped, forgets, 0)])
def test_a_step_that_is_dropped_takes_nothing_of_what_waits(memory, way, skip, call):
    """What a bucket had sent of its memory was lost; and what a reducer had raised once was raised for ever. Beside
    gradients stood the means of buckets that came before."""

    def once():
        return memory(FailsOnce(TopK(0.25), call))

    without = threads.run(skipping, 2, (bucketed, lambda: memory(TopK(0.25)), None), 20)
    for (found, waits), (right, same) in zip(threads.run(skipping, 2, (way, once, skip), 20), without):
        assert ("failed" in found, "forgotten" in found) == (skip is not forgets, skip in (forgets, fails_and_forgets))
        assert [None, None] in found  # the step that was dropped
        assert [one for one in found if one not in ("failed", "forgotten", [None, None])] == right
        assert waits == same and any(any(map(any, x)) for x in waits.values())


def summed(comm):
    """The gradients of four samples, and a reducer that does not fail."""
    model = two_layers()
    replica = naive.replicate(model, comm)
    backward(model, comm, 0)
    replica.sync(samples=4)
    return grads(model)


def failing_once(comm, replicate, backwards):
    """The same where the reducer raises in its last call, and a backward runs anew; before that what was left."""
    model = two_layers()
    replica = replicate(model, comm, FailsOnce(Mean(), 1 + backwards))
    for _ in range(backwards):
        backward(model, comm, 0)
    with pytest.raises(FloatingPointError, match="no mean today"):
        replica.sync(samples=4)
    left = grads(model)
    backward(model, comm, 0)
    replica.sync(samples=4)
    replica.close()
    return left, grads(model)


def of_a_layer(way):
    return lambda model, comm, reducer: way.replicate(model, comm, reducer, bucket_bytes=32)


@pytest.mark.parametrize(
    ("replicate", "backwards"),
    [(naive.replicate, 1), (of_a_layer(bucketed), 1), (of_a_layer(overlapped), 1), (of_a_layer(overlapped), 2)],
    ids=["naive", "bucketed", "overlapped", "overlapped, late"],
)
def test_where_a_reducer_fails_nothing_is_left_to_be_summed_again(replicate, backwards):
    """The first layer had its mean already: the next backward was added to it, and all that summed once more."""
    right = threads.run(summed, 2, (), 20)
    assert threads.run(failing_once, 2, (replicate, backwards), 20) == [([None, None], one) for one in right]
