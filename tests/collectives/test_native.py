"""The backend's own all-reduce stands behind the same face, and its bytes are known by law only."""

import torch

from lt_core.base.trace import Trace
from lt_core.collectives import native


def both(comm):
    trace, start = Trace("native"), comm.traffic.copy()
    x = torch.arange(8.0, dtype=torch.float64).view(2, 4).t() * (comm.rank + 1)
    before = x.clone()
    result = native.all_reduce(comm, x, trace)
    in_place = torch.arange(8.0) * (comm.rank + 1)
    native.run(comm, in_place)
    return torch.equal(x, before), result, in_place, comm.traffic - start, trace.spans


def test_sums_without_touching_its_input(ranks):
    expected = torch.arange(8.0, dtype=torch.float64).view(2, 4).t() * 6
    for untouched, result, in_place, _, _ in ranks(3).run(both):
        assert untouched
        assert torch.equal(result, expected)
        assert torch.equal(in_place, torch.arange(8.0) * 6)


def test_its_bytes_stand_by_law_and_its_trace_is_one_bar(ranks):
    for rank, (_, _, _, traffic, spans) in enumerate(ranks(2).run(both)):
        assert traffic.counted.bytes == 0
        assert traffic.by_law.bytes == 8 * 8 + 8 * 4  # 2 n (p - 1) / p of both calls
        assert [(s.rank, s.stream, s.name, s.nbytes) for s in spans] == [(rank, "out", "all_reduce", 64)]
        assert spans[0].end_s > spans[0].start_s


def alone(comm):
    before = comm.traffic.copy()
    return native.all_reduce(comm, torch.tensor(7)).item(), (comm.traffic - before).bytes


def test_one_rank_is_identity(ranks):
    assert ranks(1).run(alone) == [(7, 0)]
