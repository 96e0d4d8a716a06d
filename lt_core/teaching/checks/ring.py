"""Lab 20: the two halves of a ring all-reduce, and both in one.

    reduce_scatter(comm, x) -> y    y like x; on rank r chunk (r + 1) % p of y is that chunk of the sum
    all_gather(comm, y) -> z        y as above; every chunk of z is what its owner held
    all_reduce(comm, x) -> z        z is the sum, the same bits on every rank

Chunk i of p of n elements is bounds(n, i, p). Empty chunks may be sent or left out.
"""

from __future__ import annotations

from collections.abc import Callable

from lt_core.teaching.checks.counts import Laws, bytes_sent, made_of_exchanges, messages
from lt_core.teaching.checks.exercise import Case, Exercise, Make, Property, Run
from lt_core.teaching.checks.ring_halves import (
    WHOLE,
    half,
    half_done,
    joined,
    one_chunk_is_the_sum,
    the_next_chunk_is_owned,
)
from lt_core.teaching.checks.tensors import (
    equals,
    floats,
    integers,
    no_tensor,
    returns_tensor,
    same_on_every_rank,
    strided,
    total,
    untouched,
)

SIZES, LENGTHS = (2, 3, 4, 5), (0, 1, 3, 10, 1023)
RESULT = "returns a tensor like its input"


def properties(make: Make, right: Callable[[Run], str], laws: Laws, *more: Property) -> tuple[Property, ...]:
    """What is asked of each of the three; `more` stands after the values."""

    def judge(run: Run) -> str:
        return no_tensor(run) or right(run)

    even, uneven = _even(make), tuple(Case(p, n, make) for n in LENGTHS for p in SIZES)
    return (
        returns_tensor(even),
        Property("values", even, judge, (RESULT,)),
        *more,
        Property("any length", uneven, judge, ("values",)),
        Property("one rank alone", (Case(1, 6, make),), judge, (RESULT,)),
        Property("strided input", (Case(4, 24, strided(make)),), judge, ("values",)),
        untouched(even, RESULT),
        made_of_exchanges(even, RESULT),
        messages(even, laws, RESULT, "made of exchanges"),
        bytes_sent((*even, *uneven), laws, "any length", "made of exchanges", *(one.name for one in more)),
    )


def exercise(name: str, face: str, asked: tuple[Property, ...]) -> Exercise:
    """An exercise whose function is called as fn(comm, x); 2, 3 and 4 real processes try some of its cases."""
    tried = dict.fromkeys(c for one in asked for c in one.cases if c.size in (2, 3, 4) and c.elements in (3, 10, 24))
    return Exercise(name, face, asked, tuple(tried), lambda fn, comm, x: fn(comm, x))


def _even(make: Make) -> tuple[Case, ...]:
    return tuple(Case(p, 6 * p, make) for p in SIZES)


OWNER = Property("owner", _even(integers), the_next_chunk_is_owned, ("values",))
BITS = same_on_every_rank(_even(floats), "values")
HALF_BITS = same_on_every_rank(_even(half_done(floats)), "values")

EXERCISES = (
    exercise(
        "20.reduce_scatter",
        "reduce_scatter(comm, x)",
        properties(integers, one_chunk_is_the_sum, half(1), OWNER),
    ),
    exercise(
        "20.all_gather",
        "all_gather(comm, y)",
        properties(half_done(integers), equals(joined), half(2), HALF_BITS),
    ),
    exercise("20.all_reduce", "all_reduce(comm, x)", properties(integers, equals(total), WHOLE, BITS)),
)
