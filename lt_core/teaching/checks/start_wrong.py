"""Wrong answers to lab 00, each with the thought behind it and the property that refuses it."""

from __future__ import annotations

import torch
from torch import Tensor

from lt_core.base.trace import Trace
from lt_core.comm.comm import Comm
from lt_core.teaching.checks.exercise import Answer
from lt_core.teaching.checks.start_answers import my_sum, what_to_mend, who_was_late


def only_rank_0(comm: Comm, x: Tensor) -> Tensor:
    """Adds up, and the others keep their own."""
    total = my_sum(comm, x)
    return total if comm.rank == 0 else x


def four_ranks(comm: Comm, x: Tensor) -> Tensor:
    """There are four, says the lab."""
    total = x.clone()
    if comm.rank == 0:
        for r in (1, 2, 3):
            came = torch.empty_like(x)
            comm.exchange([], [(came, r)])
            total += came
        for r in (1, 2, 3):
            comm.exchange([(total, r)], [])
    else:
        comm.exchange([(x, 0)], [])
        comm.exchange([], [(total, 0)])
    return total


def into_x(comm: Comm, x: Tensor) -> Tensor:
    """Adds into what the caller handed over."""
    return x.copy_(my_sum(comm, x))


def everybody_to_everybody(comm: Comm, x: Tensor) -> Tensor:
    """Right, with p (p - 1) messages."""
    others = [r for r in range(comm.size) if r != comm.rank]
    came = {r: torch.empty_like(x) for r in others}
    comm.exchange([(x, r) for r in others], [(came[r], r) for r in others])
    return x + sum(came.values())


def rank_0_times_p(comm: Comm, x: Tensor) -> Tensor:
    """Passes where all hold the same."""
    total = my_sum(comm, x if comm.rank == 0 else torch.zeros_like(x))
    return total * comm.size


def no_return(comm: Comm, x: Tensor) -> None:
    """Sums, and keeps it."""
    my_sum(comm, x)


def the_back_end_s(comm: Comm, x: Tensor) -> Tensor:
    """One line."""
    total = x.clone()
    comm.all_reduce(total)
    return total


def nobody_listens(comm: Comm, x: Tensor) -> Tensor:
    """Rank 0 sends first, as all others do."""
    came = torch.empty_like(x)
    for r in range(1, comm.size) if comm.rank == 0 else (0,):
        comm.exchange([(x, r)], [])
        comm.exchange([], [(came, r)])
    return x + came


def waits_for_a_flag(comm: Comm, x: Tensor) -> Tensor:
    """Never set, for each rank has its own."""
    ready = comm.rank == 0
    while not ready:
        pass
    return x


BOARD: dict[int, Tensor] = {}  # what threads of one process see of each other, and processes do not


def over_a_shared_board(comm: Comm, x: Tensor) -> Tensor:
    """A variable of one rank is there on the others, on threads."""
    BOARD[comm.rank] = x.clone()
    my_sum(comm, x)
    return torch.stack([BOARD[r] for r in range(comm.size)]).sum(0)


def waited_longest(trace: Trace) -> tuple[int, float]:
    """Long bars look late."""
    inside = {s.rank: s.end_s - s.start_s for s in trace.spans if s.name == "all_reduce"}
    return max(inside, key=inside.__getitem__), max(inside.values()) - min(inside.values())


def lowest_number(trace: Trace) -> tuple[int, float]:
    """Rank 0 is the slow one."""
    return 0, who_was_late(trace)[1]


def when_it_came(trace: Trace) -> tuple[int, float]:
    """The moment, not the distance."""
    rank, _ = who_was_late(trace)
    return rank, max(s.start_s for s in trace.spans if s.name == "all_reduce")


def longest_work(trace: Trace) -> tuple[int, float]:
    """Who works longest comes last, if all begin at once."""
    *_, before, last = sorted((s.end_s - s.start_s, s.rank) for s in trace.spans if s.name == "work")
    return last[1], last[0] - before[0]


def after_the_first(trace: Trace) -> tuple[int, float]:
    """How long the first one waited, not the one before."""
    first, *_, last = sorted((s.start_s, s.rank) for s in trace.spans if s.name == "all_reduce")
    return last[1], last[0] - first[0]


def only_the_rank(trace: Trace) -> int:
    """Half of the answer."""
    return who_was_late(trace)[0]


def on_the_clock(p: int, late_s: float, sum_s: float) -> tuple[float, str]:
    """One second has passed."""
    return late_s, what_to_mend(p, late_s, sum_s)[1]


def all_of_them_wait(p: int, late_s: float, sum_s: float) -> tuple[float, str]:
    """The late one, too."""
    return p * late_s, what_to_mend(p, late_s, sum_s)[1]


def always_the_late_rank(p: int, late_s: float, sum_s: float) -> tuple[float, str]:
    """Waiting is what the lab is about."""
    return (p - 1) * late_s, "the late rank"


def seconds_compared(p: int, late_s: float, sum_s: float) -> tuple[float, str]:
    """The longer time is the dearer one."""
    return (p - 1) * late_s, "the late rank" if late_s > sum_s else "the sum"


def the_clock_against_all(p: int, late_s: float, sum_s: float) -> tuple[float, str]:
    """One second late, against what all spend in the sum."""
    return (p - 1) * late_s, "the late rank" if late_s > p * sum_s else "the sum"


def no_reason(p: int, late_s: float, sum_s: float) -> float:
    """Half of the answer."""
    return (p - 1) * late_s


WRONG: dict[str, tuple[Answer, ...]] = {
    "00.my_sum": (
        Answer("W1", "only rank 0 gets the sum", only_rank_0, "values on every rank", alone=True),
        Answer("W2", "there are four ranks", four_ranks, "1, 2 and 3 ranks", alone=True),
        Answer("W3", "adds into the caller's x", into_x, "input untouched", alone=True),
        Answer("W4", "everybody to everybody", everybody_to_everybody, "messages", alone=True),
        Answer("W5", "p times rank 0's value", rank_0_times_p, "values on every rank", alone=True),
        Answer("W6", "no return", no_return, "returns a tensor like its input", alone=True),
        Answer("W7", "the back end can do it", the_back_end_s, "made of exchanges", alone=True),
        Answer("W8", "all send first", nobody_listens, "returns a tensor like its input", alone=True),
        Answer("W9", "waits for a flag", waits_for_a_flag, "returns a tensor like its input", alone=True),
        Answer("W10", "ranks share variables", over_a_shared_board, "real processes", alone=True),
    ),
    "00.who_was_late": (
        Answer("W6", "the rank that waited longest", waited_longest, "the late rank", alone=True),
        Answer("W7", "the lowest number", lowest_number, "the late rank", alone=True),
        Answer("W8", "the moment it came", when_it_came, "by how much", alone=True),
        Answer("W9", "the longest work", longest_work, "whenever they began", alone=True),
        Answer("W10", "only the rank", only_the_rank, "two numbers", alone=True),
        Answer("W11", "after the first one", after_the_first, "by how much", alone=True),
    ),
    "00.what_to_mend": (
        Answer("W12", "seconds on the clock", on_the_clock, "rank-seconds", alone=True),
        Answer("W13", "all of them wait", all_of_them_wait, "rank-seconds", alone=True),
        Answer("W14", "always the late rank", always_the_late_rank, "what costs more", alone=True),
        Answer("W15", "seconds, not rank-seconds", seconds_compared, "two ranks", alone=True),
        Answer("W16", "no reason", no_reason, "a number and a reason", alone=True),
        Answer("W17", "seconds against rank-seconds", the_clock_against_all, "what costs more", alone=True),
    ),
}
