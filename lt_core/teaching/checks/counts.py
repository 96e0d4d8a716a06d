"""How much was sent: properties that hold the counts of a run, taken from its Traffic, to a law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lt_core.base.units import bounds
from lt_core.teaching.checks.exercise import Case, Property, Run

TIMES = {2: "twice"}


def made_of_exchanges(cases: Sequence[Case], *after: str) -> Property:
    """No collective of the back end was called."""

    def judge(run: Run) -> str:
        calls = [r for r, o in enumerate(run.outcomes) if o.traffic.by_law.messages]
        return f"{run.case}: rank {calls[0]} called a collective of the back end; exchange alone" if calls else ""

    return Property("made of exchanges", tuple(cases), judge, after)


class Laws(NamedTuple):
    """What each rank sends: `least` (chunks with elements) to `most` messages, `nbytes`; no chunk more than `often`."""

    least: Callable[[Case, int], int]
    most: Callable[[Case], int]
    nbytes: Callable[[Case, int], int]
    often: int


def messages(cases: Sequence[Case], laws: Laws, *after: str) -> Property:
    """Each rank sends as many messages as the law says; those without elements may be left out."""

    def judge(run: Run) -> str:
        for r, o in enumerate(run.outcomes):
            sent, most = o.traffic.counted.messages, laws.most(run.case)
            if not laws.least(run.case, r) <= sent <= most:
                again = _sent_again(run, r, laws.often)
                return f"{run.case}: sent {sent}, the law says {most} (rank {r}{again})"
        return ""

    return Property("messages", tuple(cases), judge, after)


def bytes_sent(cases: Sequence[Case], laws: Laws, *after: str) -> Property:
    """Each rank sends as many bytes as the law says, to the digit."""

    def judge(run: Run) -> str:
        for r, o in enumerate(run.outcomes):
            sent, wanted = o.traffic.counted.bytes, laws.nbytes(run.case, r)
            if sent != wanted:
                return f"{run.case}: rank {r} sent {sent:,} bytes, the law says {wanted:,}"
        return ""

    return Property("bytes", tuple(cases), judge, after)


def _sent_again(run: Run, rank: int, often: int) -> str:
    """` sent chunk 3 twice`, where that shows: the messages are pieces of a tensor as long as x."""
    n, p = run.case.elements, run.case.size
    chunk_at = {bounds(n, c, p): c for c in reversed(range(p))}
    sent = Counter(chunk_at.get((s.first, s.first + s.elements), -1) for s in run.outcomes[rank].sent if s.whole == n)
    again = sorted((c, times) for c, times in sent.items() if c >= 0 and times > often)
    return f" sent chunk {again[0][0]} {TIMES.get(again[0][1], f'{again[0][1]} times')}" if again else ""
