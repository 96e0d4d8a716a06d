"""The four collectives with a root: drawings, any root, any subset, any tensor; outsiders get an error."""

import pytest
import torch

from lt_core.base.errors import RankError, UserError
from lt_core.collectives.basic import BROADCAST, GATHER, REDUCE, SCATTER, broadcast, gather, reduce, scatter
from tests.witnesses import by_simulation


def test_a_broadcast_goes_from_the_root_to_one_after_the_other():
    assert (
        BROADCAST.schedule(3).check().grid()
        == """\
0: 0SEND0>1*3 0SEND1>2*3
1: 0COPY0<0*3 .
2: .          0COPY1<0*3"""
    )


def test_a_reduce_is_its_mirror():
    assert (
        REDUCE.schedule(3, root=1).check().grid()
        == """\
0: 0SEND0>1*3 .
1: 0ADD0<0*3  0ADD1<2*3
2: .          0SEND1>1*3"""
    )


def test_a_scatter_sends_each_rank_its_chunk():
    assert (
        SCATTER.schedule(3).check().grid()
        == """\
0: 1SEND0>1 2SEND1>2
1: 1COPY0<0 .
2: .        2COPY1<0"""
    )


def test_a_gather_is_its_mirror():
    assert (
        GATHER.schedule(3, root=2).check().grid()
        == """\
0: 0SEND0>2 .
1: .        1SEND1>2
2: 0COPY0<0 1COPY1<1"""
    )


@pytest.mark.parametrize("star", [BROADCAST, REDUCE, SCATTER, GATHER], ids=lambda star: star.name)
def test_bad_roots_are_refused(star):
    for root in (-1, 3):
        with pytest.raises(UserError, match=f"{star.name} has no root {root}; expected a rank .* 0 to 2"):
            star.schedule(3, root)


@pytest.mark.parametrize("star", [BROADCAST, REDUCE, SCATTER, GATHER], ids=lambda star: star.name)
@pytest.mark.parametrize(("size", "root"), [(2, 1), (5, 3), (8, 7)])
def test_laws_hold_round_any_root(star, size, root):
    for elements in (0, 1, 7, 29):
        sent = by_simulation(star.schedule(size, root), elements, itemsize=2, cut=size)
        assert [star.law_bytes(size, elements, 2, rank, root) for rank in range(size)] == [s.nbytes for s in sent]
        assert [star.law_messages(size, elements, rank, root) for rank in range(size)] == [s.messages for s in sent]


def all_four(comm, root):
    rows = torch.arange(6 * comm.size).view(2 * comm.size, 3) + 1000 * comm.rank
    x = rows[:2]
    results = broadcast(comm, x, root), reduce(comm, x, root), scatter(comm, rows, root), gather(comm, x, root)
    assert torch.equal(x, torch.arange(6).view(2, 3) + 1000 * comm.rank)
    return results


@pytest.mark.parametrize(("size", "root"), [(1, 0), (2, 1), (3, 0), (4, 2), (5, 4)])
def test_any_root(ranks, size, root):
    x = torch.arange(6).view(2, 3)
    for rank, (told, total, part, whole) in enumerate(ranks(size).run(all_four, root)):
        assert torch.equal(told, x + 1000 * root)
        assert torch.equal(part, x + 6 * rank + 1000 * root)
        assert (total is None) == (whole is None) == (rank != root)
        if rank == root:
            assert torch.equal(total, size * x + 1000 * sum(range(size)))
            assert torch.equal(whole, torch.cat([x + 1000 * r for r in range(size)]))


def odd(comm):
    v = comm.rank + 1
    column = torch.tensor([[v, 0], [v, v]])[:, 0]
    turned = torch.arange(6).view(2, 3).t() + 10 * comm.rank
    empty, flag = torch.ones(1, 0, 2), torch.tensor([comm.rank == 1, True])
    scalar = torch.tensor(float(v))
    return [f(comm, x) for x in (column, turned, scalar, empty, flag) for f in (broadcast, gather)] + [
        reduce(comm, column),
        reduce(comm, turned),
        scatter(comm, column),
    ]


def test_strided_empty_scalar_and_bool_tensors(ranks):
    """A peer's broadcast and reduce read a strided tensor as if it were dense: [1, 2] and [3, 1], and no error."""
    here, there = ranks(2).run(odd)
    column, columns, turned, turneds, scalar, scalars, empty, empties, flag, flags, total, totals, part = here
    assert column.tolist() == there[0].tolist() == [1, 1]
    assert columns.tolist() == [1, 1, 2, 2]
    assert turned.tolist() == there[2].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert turneds.tolist() == [[0, 3], [1, 4], [2, 5], [10, 13], [11, 14], [12, 15]]
    assert (scalar.item(), there[4].item(), scalars.tolist()) == (1.0, 1.0, [1.0, 2.0])
    assert (empty.shape, empties.shape) == ((1, 0, 2), (2, 0, 2))
    assert (flag.tolist(), there[8].tolist(), flags.tolist()) == (
        [False, True],
        [False, True],
        [False, True, True, True],
    )
    assert total.tolist() == [3, 3] and totals.tolist() == [[10, 16], [12, 18], [14, 20]]
    assert (part.tolist(), there[-1].tolist()) == ([1], [1])
    assert [there[k] for k in (1, 3, 5, 7, 9, 10, 11)] == [None] * 7


def gradients(comm):
    group, x = comm.subset([0]), torch.ones(2, requires_grad=True)
    if comm.rank:
        return []
    return [verb(group, x).requires_grad for verb in (broadcast, reduce, scatter, gather)]


def test_no_gradient_flows_through(ranks):
    """A broadcast that let one through gave its source zeros. Here a backward says that nothing needs a gradient."""
    assert ranks(2).run(gradients) == [[False] * 4, []]


def in_groups(comm):
    results = []
    for members in ([1, 3], [2, 3]):
        group = comm.subset(members)
        if group.rank >= 0:
            results.append([x if x is None else x.tolist() for x in all_four(group, 0)])
    return results


def test_a_root_is_a_rank_of_its_group(ranks):
    """Peers mixed up a group's ranks with the world's: a gradient of zero, "not part of group", or silence."""
    told, kept = [[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]
    total, whole = [[1000, 1002, 1004], [1006, 1008, 1010]], [*told, *([a + 1000 for a in row] for row in told)]
    first, second = [told, total, told, whole], [told, None, kept, None]
    assert ranks(4).run(in_groups) == [[], [first], [first], [second, second]]


def from_outside(comm, verb):
    group = comm.subset([0])
    if comm.rank == 1:
        verb(group, torch.arange(2))
    comm.barrier()


@pytest.mark.parametrize("verb", [broadcast, reduce, scatter, gather], ids=lambda verb: verb.__name__)
def test_a_rank_outside_gets_an_error_also_where_nothing_is_sent(ranks, verb):
    with pytest.raises(RankError) as error:
        ranks(2).run(from_outside, verb)
    assert (error.value.rank, error.value.kind) == (1, "UserError")
    assert "rank 1 is no member of the group [0]" in error.value.message


def uneven(comm):
    return scatter(comm, torch.zeros(5, 2))


def scalar_scatter(comm):
    return scatter(comm, torch.tensor(1.0))


@pytest.mark.parametrize(("fn", "rows"), [(uneven, "5 rows"), (scalar_scatter, "no rows")])
def test_rows_that_cannot_be_shared_out_are_refused(ranks, fn, rows):
    with pytest.raises(RankError) as error:
        ranks(2).run(fn)
    assert f"{rows} cannot be scattered over 2 ranks; expected a multiple of 2" in error.value.message
