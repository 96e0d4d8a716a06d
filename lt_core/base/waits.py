"""Who waited for whom: a collective can end only after the last rank has come; until then all others wait for it.

before      rank 0  work | all_reduce .......       after    rank 0  work | waiting for rank 1 | all_reduce
            rank 1  work ........ | all_reduce               rank 1  work .................... | all_reduce
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace

from lt_core.base.records import Span
from lt_core.base.trace import Trace

WAITING_FOR = "waiting for rank "


def with_waits(trace: Trace, name: str = "all_reduce") -> Trace:
    """The same trace, each rank's n-th span of this name cut where the last rank came to its n-th: before it waits.

    trace: merged from all ranks', each of which made the same calls.
    """
    calls = _numbered(trace, name)
    last: dict[int, Span] = {}
    for span, number in calls.items():
        last[number] = max(last.get(number, span), span, key=lambda s: (s.start_s, s.rank))
    spans: list[Span] = []
    for span in trace.spans:
        came = last[calls[span]] if span in calls else span
        if span.start_s < came.start_s:
            spans.append(span._replace(name=f"{WAITING_FOR}{came.rank}", end_s=came.start_s, nbytes=0))
        spans.append(span._replace(start_s=came.start_s))
    return replace(trace, spans=spans)


def waited_s(trace: Trace) -> float:
    """Seconds that ranks waited, all of them together (rank-seconds), in a trace of `with_waits`."""
    return sum((s.end_s - s.start_s for s in trace.spans if s.name.startswith(WAITING_FOR)), 0.0)


def _numbered(trace: Trace, name: str) -> dict[Span, int]:
    """Each span of this name, and the how manieth of its rank it is."""
    seen: Counter[int] = Counter()
    numbers: dict[Span, int] = defaultdict(int)
    for span in sorted((s for s in trace.spans if s.name == name), key=lambda s: s.start_s):
        numbers[span] = seen[span.rank]
        seen[span.rank] += 1
    return numbers
