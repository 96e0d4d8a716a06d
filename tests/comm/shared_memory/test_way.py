"""A tensor in a slot goes in place, one that lies anywhere over the stages, and a small sum takes one meeting."""

import pytest
import torch

from lt_core.comm.buffers import allocate
from lt_core.comm.shared_memory import copied, in_place
from lt_core.comm.shared_memory.collectives import SMALL_BYTES
from tests.comm.shared_memory.test_verbs import STAGE_BYTES, placed, run, same, total, values

SMALL = SMALL_BYTES // 8
VERBS = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all"]


@pytest.fixture
def gone(monkeypatch):
    """Which way each collective went, as (module, function), from all ranks."""
    ways = []

    def noted(module, name):
        plain = getattr(module, name)

        def call(phases, x, *args):
            if name != "all_gather" or x.dtype != torch.uint8:  # so ranks agree on a slot
                ways.append((module.__name__.rpartition(".")[2], name))
            return plain(phases, x, *args)

        return call

    for module in (in_place, copied):
        for name in [*VERBS, "small_all_reduce"] if module is copied else VERBS:
            monkeypatch.setattr(module, name, noted(module, name))
    return ways


def verbs(comm, elements, way):
    """Each verb once, in an order that all know; `elements` of each rank."""
    x, size = placed(comm, values(comm.rank, elements * comm.size), way), comm.size
    out, part = torch.empty(elements * size**2, dtype=x.dtype), torch.empty(elements, dtype=x.dtype)
    comm.all_gather(out, x)
    comm.all_to_all(out[: elements * size], x)
    comm.reduce_scatter(part, x)
    comm.broadcast(x, 0)
    comm.all_reduce(x)
    return same(x, total([values(0, elements * size)] * size))


@pytest.mark.parametrize("elements", [SMALL, 3 * STAGE_BYTES // 16 + 5])
@pytest.mark.parametrize(("way", "module"), [("in a slot", "in_place"), ("anywhere", "copied")])
def test_large_tensors(gone, elements, way, module):
    assert run(verbs, 2, elements, way) == [True] * 2
    assert sorted(gone) == sorted((module, verb) for verb in VERBS * 2)


@pytest.mark.parametrize("elements", [1, 7, SMALL])
def test_a_small_sum_is_left_where_it_was_brought_and_takes_one_meeting(gone, elements):
    """To read from others' slots and write to them takes two."""

    def fn(comm):
        slot = allocate(comm, elements, torch.float64)
        slot.copy_(values(comm.rank, elements))
        place, met, meet = slot.data_ptr(), [], comm._phases.meet
        comm._phases.meet = lambda *where: (met.append(where), meet(*where))[1]
        comm.all_reduce(slot)
        return slot.data_ptr() == place and same(slot, total([values(r, elements) for r in range(3)])), len(met)

    assert run(fn, 3) == [(True, 1)] * 3
    assert gone == [("copied", "small_all_reduce")] * 3
