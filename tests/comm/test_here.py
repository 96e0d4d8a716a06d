"""This machine as a Cluster: a wire whose law is known is found again, and all ranks find the same."""

import pytest
import torch

from lt_core.base.cluster import Wire
from lt_core.comm import limits
from lt_core.comm.here import SIZES, fitted, here
from lt_core.comm.shaped import shaped


def test_the_wire_whose_times_are_known():
    wire = Wire("here", 1e-4, 1e9)
    found = fitted([wire.seconds(nbytes - SIZES[0]) for nbytes in SIZES])
    assert (found.name, found.latency_s) == ("here", 1e-4)
    assert found.bytes_per_s == pytest.approx(1e9)


def test_noise_makes_no_wire_backward():
    assert fitted([2e-3, 1e-3, 1e-3, 1e-3]).bytes_per_s > 0


@pytest.mark.parametrize("size", [1, 2, 3])
def test_all_ranks_find_the_same_machine(ranks, size):
    def fn(comm):
        before = comm.traffic.copy()
        return here(comm), (comm.traffic - before).bytes

    (first, nbytes), *others = ranks(size).run(fn)
    assert nbytes == 0 and all(other == (first, 0) for other in others)
    assert (first.name, first.size, first.nodes, first.inner.name) == ("here", size, 1, "here")
    assert first.inner.latency_s > 0 and first.inner.bytes_per_s > 0
    assert first.device.memory_bytes == limits.memory_bytes() // size


def test_a_slow_wire_is_seen_to_be_slow(ranks):
    """Lower bounds: a shaped wire is never faster than its law, hence neither is what is measured on it."""
    wire = Wire("slow", 2e-3, 400e6)
    found = ranks(2).run(lambda comm: here(shaped(comm, wire)))[0].inner
    assert found.latency_s >= 2e-3
    assert found.latency_s + SIZES[-1] / found.bytes_per_s >= wire.seconds(SIZES[-1])


def test_the_group_still_works_afterwards(ranks):
    def fn(comm):
        here(comm)
        x = torch.ones(1)
        comm.all_reduce(x)
        return x.item()

    assert ranks(2).run(fn) == [2, 2]
