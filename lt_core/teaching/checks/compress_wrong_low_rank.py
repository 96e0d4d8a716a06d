"""Wrong answers to lab 32's PowerSGD, each with its thought."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from lt_core.comm.comm import Comm
from lt_core.teaching.checks.compress_answers import first, low_rank_mean, orthonormal
from lt_core.teaching.checks.compress_low_rank import ALIKE, EXACT, LIKE
from lt_core.teaching.checks.exercise import Answer

Memory = dict[str, Tensor]


def factors(comm: Comm, m: Tensor, rank: int, memory: Memory) -> Any:
    """The factors are all that is needed."""
    mean = low_rank_mean(comm, m, rank, memory)
    return mean @ memory["q"], memory["q"]


def own_right_factor(comm: Comm, m: Tensor, rank: int, memory: Memory) -> Tensor:
    """One sum is enough."""
    p = m @ memory.get("q", first(m, rank, 0))
    comm.all_reduce(p)
    p = orthonormal(p)
    memory["q"] = m.T @ p
    mean: Tensor = p @ memory["q"].T
    return mean


def orthonormal_first(comm: Comm, m: Tensor, rank: int, memory: Memory) -> Tensor:
    """Makes the columns orthonormal before they are summed."""
    p = orthonormal(m @ memory.get("q", first(m, rank, 0))).contiguous()
    comm.all_reduce(p)
    p /= comm.size
    q = m.T @ p
    comm.all_reduce(q)
    memory["q"] = q / comm.size
    mean: Tensor = p @ memory["q"].T
    return mean


def a_sum(comm: Comm, m: Tensor, rank: int, memory: Memory) -> Tensor:
    """Adds up, and does not divide."""
    return low_rank_mean(comm, m, rank, memory) * comm.size


def seeds_of_their_own(comm: Comm, m: Tensor, rank: int, memory: Memory) -> Tensor:
    """Each rank draws its own first q."""
    memory.setdefault("q", first(m, rank, comm.rank))
    return low_rank_mean(comm, m, rank, memory)


def cold(comm: Comm, m: Tensor, rank: int, memory: Memory) -> Tensor:
    """A new q in each step."""
    return low_rank_mean(comm, m, rank, {})


def over_its_length(comm: Comm, m: Tensor, rank: int, memory: Memory) -> Tensor:
    """Columns are divided by their length, which may be nothing."""
    mean = low_rank_mean(comm, m, rank, memory)
    length: Tensor = mean.norm()
    return mean / length * length


def whole_matrices(comm: Comm, m: Tensor, rank: int, memory: Memory) -> Tensor:
    """Sums the matrices, then takes the factors."""
    mean = m.clone()
    comm.all_reduce(mean)
    return low_rank_mean(comm, mean / comm.size, rank, memory)


def divides_m(comm: Comm, m: Tensor, rank: int, memory: Memory) -> Tensor:
    """Divides in place, once."""
    m /= comm.size
    return low_rank_mean(comm, m, rank, memory) * comm.size


BOARD: dict[int, Tensor] = {}  # what threads of one process see of each other, and processes do not


def over_a_shared_board(comm: Comm, m: Tensor, rank: int, memory: Memory) -> Tensor:
    """A variable of one rank is there on the others, on threads."""
    mean = low_rank_mean(comm, m, rank, memory)
    if comm.rank == 0:
        BOARD[0] = mean
    comm.barrier()
    return BOARD[0]


ANSWERS = (
    Answer("W8", "orthonormal before the sum", orthonormal_first, EXACT, alone=True),
    Answer("W9", "each rank's own seed", seeds_of_their_own, "from the first step on", alone=True),
    Answer("W10", "no warm start", cold, "better from step to step", alone=True),
    Answer("W28", "the factors", factors, LIKE, alone=True),
    Answer("W29", "one sum is enough", own_right_factor, ALIKE, alone=True),
    Answer("W30", "a sum, not a mean", a_sum, EXACT, alone=True),
    Answer("W31", "divides by a length of nothing", over_its_length, "zeros stay zeros", alone=True),
    Answer("W32", "sums whole matrices", whole_matrices, "two thin sums", alone=True),
    Answer("W33", "divides in place", divides_m, "m untouched", alone=True),
    Answer("W34", "ranks share variables", over_a_shared_board, "real processes", alone=True),
)
