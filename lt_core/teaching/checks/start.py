"""Lab 00: a sum made of messages through rank 0, reading a trace, and a decision.

my_sum(comm, x) -> total            all ranks send to rank 0, which adds and sends the sum to all
who_was_late(trace) -> (rank, s)    who came last to the all_reduce, and how long after the one before
what_to_mend(p, late_s, sum_s)      see start_decide
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from lt_core.base.records import Span
from lt_core.base.trace import Trace
from lt_core.base.units import told_apart
from lt_core.teaching.checks import fastest, start_decide
from lt_core.teaching.checks.counts import made_of_exchanges
from lt_core.teaching.checks.exercise import Case, Exercise, Property, Run
from lt_core.teaching.checks.tensors import equals, integers, no_tensor, returns_tensor, total, untouched

FOUR = (Case(4, 6, integers),)
FEWER = tuple(Case(p, 6, integers) for p in (1, 2, 3))
NEAR_S = 1e-6  # two numbers of seconds that are read from one trace


def is_the_sum(run: Run) -> str:
    """A judge: every rank holds the sum."""
    return no_tensor(run) or equals(total)(run)


def through_rank_0(run: Run) -> str:
    """A judge: p - 1 messages to rank 0 and as many back."""
    sent = [o.traffic.counted.messages for o in run.outcomes]
    wanted = 2 * (run.case.size - 1)
    if sum(sent) == wanted:
        return ""
    most = max(range(run.case.size), key=sent.__getitem__)
    return f"{run.case}: sent {sum(sent)}, the law 2 (p - 1) says {wanted} (rank {most} alone sent {sent[most]})"


def late(random: torch.Generator, size: int, elements: int) -> list[Trace]:
    """A trace of `elements` ranks that begin together; one computes longer, and all wait for it."""
    return [_trace(random, elements, begins_s=[0.0] * elements)] * size


def late_though_early(random: torch.Generator, size: int, elements: int) -> list[Trace]:
    """One where the rank that computes longest began so early that it is not the late one."""
    begins_s = (torch.rand(elements, generator=random, dtype=torch.float64) * 5 - 6).tolist()
    return [_trace(random, elements, begins_s)] * size


def truth(trace: Trace) -> tuple[int, float]:
    """(rank, seconds) of the late one."""
    comes = sorted((s.start_s, s.rank) for s in trace.spans if s.name == "all_reduce")
    return comes[-1][1], comes[-1][0] - comes[-2][0]


def a_pair(run: Run) -> str:
    """A judge: two numbers come back, a rank and seconds."""
    value = run.values()[0]
    if isinstance(value, tuple | list) and len(value) == 2 and all(isinstance(v, int | float) for v in value):
        return ""
    return f"{run.case}: it returned {value!r:.40}; two numbers are wanted, (rank, seconds)"


def the_late_rank(run: Run) -> str:
    """A judge: it is the rank that came last."""
    (rank, _), (right, _) = run.values()[0], truth(run.given[0])
    return "" if rank == right else f"{run.case}: you say rank {rank}, rank {right} came last"


def by_how_much(run: Run) -> str:
    """A judge: the seconds between the last and the one before."""
    (_, seconds), (_, right) = run.values()[0], truth(run.given[0])
    if abs(seconds - right) <= NEAR_S:
        return ""
    mine, waited = told_apart(seconds, right)
    return f"{run.case}: you say {mine} s, the one before it waited {waited} s for it"


def both(run: Run) -> str:
    """A judge: rank and seconds."""
    return a_pair(run) or the_late_rank(run) or by_how_much(run)


def _trace(random: torch.Generator, ranks: int, begins_s: Sequence[float]) -> Trace:
    """Work, then an all_reduce which ends when the last has come; no two come at one moment."""
    on_time_s = 1 + float(torch.rand((), generator=random, dtype=torch.float64))
    late_s = 0.2 + float(torch.rand((), generator=random, dtype=torch.float64))
    early_s = (0.3 * torch.rand(ranks, generator=random, dtype=torch.float64)).tolist()
    who = int(torch.randint(1, ranks, (), generator=random))  # never the lowest number
    if len(set(begins_s)) > 1:
        begins_s = [0.9 if r == who else b for r, b in enumerate(begins_s)]  # it began last, and worked least
    spans = []
    for r in range(ranks):
        comes_s = on_time_s + (late_s if r == who else -early_s[r])
        spans.append(Span(r, "compute", "work", begins_s[r], comes_s))
        spans.append(Span(r, "out", "all_reduce", comes_s, on_time_s + late_s + 0.01))
    order = torch.randperm(len(spans), generator=random).tolist()
    return Trace("fresh", [spans[k] for k in order], clock="simulated").shifted(10 * on_time_s)


def _read(fn: Any, comm: object, trace: Trace) -> Any:
    value = fn(trace)
    if isinstance(value, tuple | list):
        return tuple(v.item() if hasattr(v, "item") else v for v in value)  # numpy's and torch's numbers
    return value


PLAIN = tuple(Case(1, ranks, late, f"a trace of {ranks} ranks") for ranks in (2, 3, 4, 8))
ODD = tuple(Case(1, ranks, late_though_early, f"a trace of {ranks} ranks") for ranks in (3, 4, 8))

EXERCISES = (
    Exercise(
        "00.my_sum",
        "my_sum(comm, x)",
        (
            returns_tensor(FOUR),
            Property("values on every rank", FOUR, is_the_sum, ("returns a tensor like its input",)),
            Property("1, 2 and 3 ranks", FEWER, is_the_sum, ("values on every rank",)),
            untouched(FOUR, "returns a tensor like its input"),
            made_of_exchanges(FOUR, "returns a tensor like its input"),
            Property("messages", FOUR, through_rank_0, ("returns a tensor like its input", "made of exchanges")),
        ),
        (*FOUR, *FEWER[1:]),
        lambda fn, comm, x: fn(comm, x),
    ),
    Exercise(
        "00.who_was_late",
        "who_was_late(trace)",
        (
            Property("two numbers", PLAIN, a_pair),
            Property("the late rank", PLAIN, the_late_rank, ("two numbers",)),
            Property("by how much", PLAIN, by_how_much, ("the late rank",)),
            Property("whenever they began", ODD, both, ("by how much",)),
        ),
        (),
        _read,
    ),
    Exercise("00.what_to_mend", "what_to_mend(p, late_s, sum_s)", start_decide.PROPERTIES, (), fastest.asked),
)
