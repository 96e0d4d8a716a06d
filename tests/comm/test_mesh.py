"""A grid of ranks: who shares a row with whom, sums along each axis, groups without rank 0, grids that do not fit."""

import pytest
import torch

from lt_core.base.errors import RankError, UserError
from lt_core.comm.mesh import AXES, across, mesh


def test_tensor_parallel_ranks_are_next_to_each_other_and_stages_far_apart(ranks):
    def fn(comm):
        grid = mesh(comm, dp=2, pp=2, tp=2)
        return grid.pp.rank, grid.dp.rank, grid.ep.rank, grid.tp.rank, grid.lengths

    assert ranks(8).run(fn) == [(r // 4, r // 2 % 2, 0, r % 2, (2, 2, 1, 2)) for r in range(8)]


def test_each_axis_sums_over_its_own_row(ranks):
    def fn(comm):
        grid = mesh(comm, dp=2, ep=2, pp=2)
        sums, told = [], []
        for axis in AXES:
            row, x, y = getattr(grid, axis), torch.tensor([2**comm.rank]), torch.tensor([comm.rank])
            row.all_reduce(x)
            row.broadcast(y, row.size - 1)
            sums.append({r for r in range(comm.size) if x.item() >> r & 1})
            told.append(y.item())
        assert told == [max(row) for row in sums]  # roots are ranks of their row, and most rows are without rank 0
        return sums

    for rank, (pp, dp, ep, tp) in enumerate(ranks(8).run(fn)):
        assert pp == {rank % 4, rank % 4 + 4}
        assert dp == {rank & ~2, rank | 2}
        assert ep == {rank // 2 * 2, rank // 2 * 2 + 1}
        assert tp == {rank}


def test_the_coordinates_of_others(ranks):
    def fn(comm):
        grid = mesh(comm, dp=2, pp=2)
        return grid.rank_at(pp=0), grid.rank_at(pp=1, dp=0), grid.rank_at()

    assert ranks(4).run(fn) == [(0, 2, 0), (1, 2, 1), (0, 2, 2), (1, 2, 3)]


@pytest.mark.parametrize(
    "at, text",
    [
        ({"pp": 2}, "pp has no coordinate 2; got 2; expected 0 to 1"),
        ({"xp": 0}, "a mesh has no axis 'xp'; expected pp,"),
    ],
)
def test_coordinates_that_are_not_there(ranks, at, text):
    with pytest.raises(RankError) as caught:
        ranks(2).run(lambda comm: mesh(comm, pp=2).rank_at(**at))
    assert str(caught.value.__cause__).startswith(text)


def test_two_axes_at_once(ranks):
    def fn(comm):
        grid = mesh(comm, dp=2, ep=2, tp=2)
        x, y = torch.tensor([[2**comm.rank]] * 2)
        across(grid, "ep", "dp").all_reduce(x)
        grid.tp.all_reduce(y)
        return x.item(), y.item()

    both = [(0b01010101, 0b10101010)[rank % 2] for rank in range(8)]
    assert ranks(8).run(fn) == [(x, 0b11 << rank // 2 * 2) for rank, x in enumerate(both)]


@pytest.mark.parametrize("axes", [(), ("dp", "dp"), ("rows",)])
def test_axes_that_are_none(ranks, axes):
    with pytest.raises(RankError, match="these are no axes of a mesh"):
        ranks(2).run(lambda comm: across(mesh(comm, dp=2), *axes))


@pytest.mark.parametrize(
    "lengths, text",
    [
        ({"dp": 3}, "pp=1 * dp=3 * ep=1 * tp=1 = 3; expected a product of 4"),
        ({"dp": -2, "tp": -2}, "pp=1 * dp=-2 * ep=1 * tp=-2 = 4; expected a product of 4"),
        ({"dp": 0}, "pp=1 * dp=0 * ep=1 * tp=1 = 0; expected a product of 4"),
        ({}, "pp=1 * dp=1 * ep=1 * tp=1 = 1; expected a product of 4"),
    ],
)
def test_grids_that_do_not_hold_all_ranks(ranks, lengths, text):
    with pytest.raises(RankError) as caught:
        ranks(4).run(lambda comm: mesh(comm, **lengths))
    assert isinstance(caught.value.__cause__, UserError)
    assert str(caught.value.__cause__) == f"the mesh does not hold all ranks; got {text}"


@pytest.mark.parametrize("members", [[1, 3], [3, 1], [2, 3]])
def test_the_root_of_a_group_is_its_own_rank_not_the_wholes(ranks, members):
    """A root chosen by the group's rank and passed as the world's (or the reverse) gave a zero gradient or silence."""

    def fn(comm):
        group = comm.subset(members)
        x = torch.tensor([10 * comm.rank])
        if comm.rank not in members:
            with pytest.raises(UserError, match="is no member of the group"):
                group.broadcast(x, 0)
            return x.item()
        group.broadcast(x, 0)
        return x.item()

    assert ranks(4).run(fn) == [10 * members[0] if r in members else 10 * r for r in range(4)]
