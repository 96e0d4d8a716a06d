"""Lab 32: error feedback, top-k over ranks, PowerSGD, a choice for a wire.

feedback(memory, grads, send) -> sent          one step; memory keeps what was not sent
top_k_mean(comm, x, k) -> mean                 each rank's k largest, as pairs, and their mean
low_rank_mean(comm, m, rank, memory) -> mean   of matrices, through two factors
pick(p, wire, seconds) -> name                 "dense", "top-k" or "PowerSGD"
"""

from __future__ import annotations

from lt_core.teaching.checks import compress_low_rank, compress_memory, compress_pick, compress_top_k, fastest
from lt_core.teaching.checks.compress_memory import small, steps
from lt_core.teaching.checks.compress_top_k import K, alike, apart, below_zero, ties
from lt_core.teaching.checks.counts import made_of_exchanges
from lt_core.teaching.checks.exercise import Case, Exercise, Make, Property
from lt_core.teaching.checks.tensors import returns_tensor, untouched


def _cases(what: str, make: Make, elements: int = 6) -> tuple[Case, ...]:
    return (Case(1, elements, make, what),)


ONE = _cases("one step", steps(1, "w"))
TWO = _cases("two steps", steps(2, "w"))
MANY = _cases("nine steps", steps(9, "w"))
BACK, ONCE, ADDED, KEPT = "returns what was sent", "one message a step", "what waits is added", "nothing is lost"

RESULT = "returns a tensor like its input"
SEVERAL = tuple(Case(p, 5 * p + K, apart) for p in (2, 3, 4))
SHARED = tuple(Case(p, 5 * p + K, alike) for p in (2, 3, 4))

EXERCISES = (
    Exercise(
        "32.feedback",
        "feedback(memory, grads, send)",
        (
            Property(BACK, ONE, compress_memory.returns_sent),
            Property(ONCE, MANY, compress_memory.sends_once, (BACK,)),
            Property(ADDED, TWO, compress_memory.hands_over, (BACK,)),
            Property(KEPT, MANY, compress_memory.hands_over, (ADDED,)),
            Property(
                "a memory for each tensor",
                _cases("two tensors", steps(4, "w", "v")),
                compress_memory.hands_over,
                (KEPT,),
            ),
            Property(
                "a tensor that stays away",
                _cases("step 2 has no v", steps(5, "w", "v", leave_out=2)),
                compress_memory.hands_over,
                ("a memory for each tensor",),
            ),
            Property("gradients untouched", MANY, compress_memory.leaves_gradients, (BACK,)),
            Property(
                "half-precision gradients",
                _cases("40 steps in 16 bits", small),
                compress_memory.conserves,
                (KEPT, "gradients untouched"),
            ),
        ),
        (),
        compress_memory.play,
    ),
    Exercise(
        "32.top_k",
        "top_k_mean(comm, x, k)",
        (
            returns_tensor(SEVERAL),
            Property("divided by all ranks", SEVERAL, compress_top_k.is_the_mean, (RESULT,)),
            Property("an index of several ranks", SHARED, compress_top_k.is_the_mean, (RESULT,)),
            Property(
                "by size, not by sign",
                tuple(Case(p, 5 * p + K, below_zero(apart)) for p in (2, 3)),
                compress_top_k.is_the_mean,
                ("divided by all ranks",),
            ),
            Property("k, also on ties", (Case(2, 12, ties),), compress_top_k.keeps_k, (RESULT,)),
            Property("one rank alone", (Case(1, 9, apart),), compress_top_k.is_the_mean, (RESULT,)),
            untouched(SEVERAL, RESULT),
            made_of_exchanges(SEVERAL, RESULT),
            Property("pairs on the wire", SEVERAL, compress_top_k.sends_pairs, ("made of exchanges",)),
        ),
        (*SEVERAL, SHARED[0]),
        lambda fn, comm, x: fn(comm, x, K),
    ),
    compress_low_rank.EXERCISE,
    Exercise("32.pick", "pick(p, wire, seconds)", compress_pick.PROPERTIES, (), fastest.asked),
)
