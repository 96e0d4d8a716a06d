"""What is asked of the two halves of a ring: what their ranks are handed, what they then hold, what they send."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lt_core.base.units import bounds
from lt_core.collectives import ring
from lt_core.teaching.checks.counts import Laws
from lt_core.teaching.checks.exercise import Case, Make, Run
from lt_core.teaching.checks.tensors import ITEM_BYTES, shown, total


def owned(rank: int, size: int, elements: int) -> tuple[int, int]:
    """Where the chunk lies which `rank` owns between the two halves."""
    return bounds(elements, (rank + 1) % size, size)


def half_done(make: Make) -> Make:
    """y of each rank: its own chunk of the sum, and NaN where it has nothing finished."""

    def made(random: torch.Generator, size: int, elements: int) -> list[Tensor]:
        whole = total(make(random, size, elements))
        given = [torch.full_like(whole, torch.nan) for _ in range(size)]
        for r, y in enumerate(given):
            low, high = owned(r, size, elements)
            y[low:high] = whole[low:high]
        return given

    return made


def joined(given: Sequence[Tensor]) -> Tensor:
    """The whole that the owned chunks make."""
    return torch.stack(list(given)).nansum(0)


def finished(run: Run) -> list[int]:
    """The shifts s for which every rank r holds chunk (r + s) % p of the sum; an empty chunk is held by everybody."""
    n, p, whole = run.case.elements, run.case.size, total(run.given)

    def holds(rank: int, shift: int) -> bool:
        low, high = bounds(n, (rank + shift) % p, p)
        return torch.equal(run.outcomes[rank].value[low:high], whole[low:high])

    return [s for s in range(p) if all(holds(r, s) for r in range(p))]


def one_chunk_is_the_sum(run: Run) -> str:
    """A judge: each rank holds one finished chunk, whichever it is."""
    if finished(run):
        return ""
    n, p, whole = run.case.elements, run.case.size, total(run.given)
    for r in range(p):
        low, high = owned(r, p, n)
        value = run.outcomes[r].value[low:high]
        if not torch.equal(value, whole[low:high]):
            right = f"chunk {(r + 1) % p}, elements {low} to {high - 1}, should be {shown(whole[low:high])}"
            return f"{run.case}: rank {r}: {right}, it holds {shown(value)}"
    return ""


def the_next_chunk_is_owned(run: Run) -> str:
    """A judge: it is the chunk after the rank's own number."""
    p, shifts = run.case.size, finished(run)
    if 1 % p in shifts:
        return ""
    return f"{run.case}: after the last round rank 1 should own chunk {2 % p}, you left it chunk {(1 + shifts[0]) % p}"


def half(left_out: int) -> Laws:
    """What rank r sends in a half: every chunk but (r + left_out) % p."""

    def least(case: Case, rank: int) -> int:
        return min(case.size, case.elements) - (_length(case, rank, left_out) > 0)

    def nbytes(case: Case, rank: int) -> int:
        return ITEM_BYTES * (case.elements - _length(case, rank, left_out))

    return Laws(least, lambda case: case.size - 1, nbytes, often=1)


WHOLE = Laws(
    lambda case, rank: ring.law_messages(case.size, case.elements, rank),
    lambda case: ring.law_rounds(case.size),
    lambda case, rank: ring.law_bytes(case.size, case.elements, ITEM_BYTES, rank),
    often=2,
)


def _length(case: Case, rank: int, ahead: int) -> int:
    low, high = bounds(case.elements, (rank + ahead) % case.size, case.size)
    return high - low
