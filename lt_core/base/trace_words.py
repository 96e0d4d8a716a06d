"""A trace in two to six sentences: what a picture of it shows, for those who do not see the picture."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lt_core.base.records import Span
from lt_core.base.units import bytes_text, seconds_text

if TYPE_CHECKING:
    from lt_core.base.trace import Trace


def words(trace: Trace, stable: bool) -> str:
    """Ranks and counts, bytes, order, memory; and unless `stable`, times."""
    if not trace.spans and not trace.levels:
        return f"{trace.name}: nothing happened."
    sentences = [_counts(trace), _bytes(trace.spans), _order(trace)]
    sentences += [] if stable else [_times(trace)]
    sentences += [_memory(trace)]
    return " ".join(filter(None, sentences))


def _counts(trace: Trace) -> str:
    per_stream = Counter(s.stream for s in trace.spans)
    streams = ", ".join(f"{n:,} on {stream}" for stream, n in sorted(per_stream.items()))
    how = f", {trace.clock}" + (f" over {trace.backend}" if trace.backend else "")
    return f"{trace.name}: {_many(len(trace.ranks()), 'rank')}, {_many(len(trace.spans), 'action')} ({streams}){how}."


def _bytes(spans: list[Span]) -> str:
    sent: Counter[int] = Counter()
    for s in spans:
        if s.stream == "out":
            sent[s.rank] += s.nbytes
    if not sum(sent.values()):
        return ""
    if len(set(sent.values())) == 1:
        return f"Each rank sends {next(iter(sent.values())):,} bytes."
    most = max(sent, key=lambda r: (sent[r], -r))
    return f"Rank {most} sends most, {sent[most]:,} bytes of {sum(sent.values()):,} in all."


def _order(trace: Trace) -> str:
    rank = min(trace.ranks(), default=0)
    streams = {s.stream for s in trace.spans if s.rank == rank}
    stream = next((s for s in ("compute", "out", "in") if s in streams), min(streams, default=""))
    names = trace.order(rank, stream)
    shown = " ".join(names[:8]) + (f" ... {names[-1]}" if len(names) > 8 else "")
    return f"Rank {rank}'s {stream} runs {shown}." if names else ""


def _times(trace: Trace) -> str:
    busiest = max(sorted({(s.rank, s.stream) for s in trace.spans}), key=lambda lane: trace.busy_s(*lane), default=None)
    if busiest is None or not trace.makespan_s():
        return ""
    share = trace.busy_s(*busiest) / trace.makespan_s()
    rank, stream = busiest
    return f"It takes {seconds_text(trace.makespan_s())}; rank {rank}'s {stream} is busiest, {share:.0%} of that."


def _memory(trace: Trace) -> str:
    peaks = {r: trace.peak_bytes(r) for r in sorted({x.rank for x in trace.levels})}
    if not peaks:
        return ""
    rank = max(peaks, key=lambda r: peaks[r])
    return f"Memory is highest on rank {rank}, {bytes_text(peaks[rank])}."


def _many(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
