"""A reducer is copied, or pickled, with all it remembers, and goes on as the first would have."""

import copy
import pickle

import pytest
import torch

from lt_core.comm import threads
from lt_core.compression import ErrorFeedback, TopK
from tests.compression.test_bad_input import REDUCERS

WAYS = {"copied": copy.deepcopy, "pickled": lambda reducer: pickle.loads(pickle.dumps(reducer))}
MAKERS = {**REDUCERS, "memory": lambda: ErrorFeedback(TopK(0.2))}


def both(comm, make, way):
    """Two steps, then the third of the reducer and of its copy."""
    draws = torch.Generator().manual_seed(comm.rank)
    reducer = make()
    for _ in range(2):
        reducer.reduce({"w": torch.randn(6, 5, generator=draws)}, comm)
    grads, again = {"w": torch.randn(6, 5, generator=draws)}, way(reducer)
    return [one.reduce(grads, comm).mean["w"] for one in (reducer, again)]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_copy_goes_on_alike(make, way):
    """It knew the communicators it had worked with, which have locks: cannot pickle '_thread.lock' object."""
    for first, second in threads.run(both, 2, (make, way), 20):
        assert torch.equal(first, second)
