"""A rank that never arrives is named to those who wait for its gradients, whichever way they travel; nobody hangs."""

import pytest
import torch
from torch import nn

from lt_core.base.errors import RankError
from lt_core.collectives import Mean, ring
from lt_core.comm import threads
from lt_core.comm.shared_memory import over
from lt_core.compression import ErrorFeedback, TopK
from lt_core.data_parallel import local_sgd
from lt_core.data_parallel.replicate import bucketed, naive, overlapped

WAYS = {
    "naive": naive.replicate,
    "bucketed": bucketed.replicate,
    "overlapped": overlapped.replicate,
    "local sgd": lambda model, comm, reducer: local_sgd.replicate(model, comm, 1, reducer=reducer),
}
REDUCERS = {
    "none, in shared memory": lambda: None,
    "ring": lambda: Mean(ring.schedule),
    "top-k": lambda: ErrorFeedback(TopK(0.5)),
}
NAMED = {
    True: r"Deadline: rank 0 waited 0\.5 s in all_reduce: of 2 ranks \[1\] have",
    False: "for rank 1; rank 1 has returned",
}


def one_step(model, replica):
    model.zero_grad()
    model(torch.ones(1, 30)).sum().backward()
    replica.sync()
    getattr(replica, "average", lambda: None)()


@pytest.mark.parametrize("reducer", REDUCERS)
@pytest.mark.parametrize("way", WAYS)
def test_it_is_named(way, reducer):
    """Rank 1 leaves after the first step."""
    sharing = "shared" in reducer

    def fn(comm):
        model, comm = nn.Linear(30, 20), over(comm) if sharing else comm
        replica = WAYS[way](model, comm, REDUCERS[reducer]())
        for number in range(2 - comm.rank):
            comm.timeout_s = 0.5 if sharing and number else 20  # it comes to the first, however late
            one_step(model, replica)
        getattr(replica, "close", lambda: None)()

    with pytest.raises(RankError, match=rf"^rank 0 failed first: .*{NAMED[sharing]}"):
        threads.run(fn, 2, (), 20)
