"""What happened, when, on which rank: the record that a simulation, an emulation and a real run all leave behind.

Span   something that took time          rank 2, out, "3SEND0>3", 1.2 ms to 1.9 ms
Level  how many bytes were alive         rank 2, 1.9 ms, activations, 4096
Mark   a value at a moment               rank 2, 1.9 ms, "loss_scale", 65536
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lt_core.base import trace_file
from lt_core.base.records import JSON, Level, Mark, Span
from lt_core.base.trace_words import words

__all__ = ["JSON", "Level", "Mark", "Span", "Trace"]


@dataclass
class Trace:
    """The record of one run. `clock` is "measured", "simulated" or "emulated x0.01"; `backend` says what carried it."""

    name: str
    spans: list[Span] = field(default_factory=list)
    levels: list[Level] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    clock: str = "measured"
    backend: str = ""

    def ranks(self) -> list[int]:
        """The ranks that left a span, in order."""
        return sorted({s.rank for s in self.spans})

    def makespan_s(self) -> float:
        """Seconds from the first start to the last end; 0 for an empty trace."""
        if not self.spans:
            return 0.0
        return max(s.end_s for s in self.spans) - min(s.start_s for s in self.spans)

    def busy_s(self, rank: int, stream: str) -> float:
        """Seconds during which a stream of a rank did something."""
        return sum((s.end_s - s.start_s for s in self.spans if s.rank == rank and s.stream == stream), 0.0)

    def idle_fraction(self) -> float:
        """The bubble: the share of all ranks' time in which no compute ran; 0 for an empty trace."""
        ranks, whole = self.ranks(), self.makespan_s()
        if not whole:
            return 0.0
        return 1 - sum(self.busy_s(r, "compute") for r in ranks) / (len(ranks) * whole)

    def peak_bytes(self, rank: int) -> int:
        """The most bytes alive at once on a rank, all owners together."""
        live: dict[tuple[str, str], int] = {}
        total = peak = 0
        for level in sorted((x for x in self.levels if x.rank == rank), key=lambda x: x.at_s):
            total += level.live_bytes - live.get((level.owner, level.module), 0)
            live[level.owner, level.module] = level.live_bytes
            peak = max(peak, total)
        return peak

    def order(self, rank: int, stream: str) -> list[str]:
        """The names of a stream's spans in the order in which they started."""
        return [s.name for s in sorted(self.spans, key=lambda s: s.start_s) if (s.rank, s.stream) == (rank, stream)]

    @staticmethod
    def merge(traces: Sequence[Trace], offsets: Sequence[float] | None = None) -> Trace:
        """One trace of all: `offsets[k]` seconds are taken from the times of `traces[k]` (see `clock.offset`), and the
        whole is moved so that it starts at 0."""
        given = offsets if offsets is not None else [0.0] * len(traces)
        moved = [t.shifted(-o) for t, o in zip(traces, given, strict=True)]
        first = moved[0] if moved else Trace("empty")
        spans = sorted((s for t in moved for s in t.spans), key=lambda s: (s.start_s, s.rank, s.stream, s.name))
        levels = sorted((x for t in moved for x in t.levels), key=lambda x: (x.at_s, x.rank))
        marks = sorted((m for t in moved for m in t.marks), key=lambda m: (m.at_s, m.rank))
        whole = Trace(first.name, spans, levels, marks, first.clock, first.backend)
        starts = [s.start_s for s in spans] + [x.at_s for x in levels] + [m.at_s for m in marks]
        return whole.shifted(-min(starts, default=0.0))

    def shifted(self, by_s: float) -> Trace:
        """The same trace, `by_s` seconds later."""
        return replace(
            self,
            spans=[s._replace(start_s=s.start_s + by_s, end_s=s.end_s + by_s) for s in self.spans],
            levels=[x._replace(at_s=x.at_s + by_s) for x in self.levels],
            marks=[m._replace(at_s=m.at_s + by_s) for m in self.marks],
        )

    def to_text(self) -> str:
        """JSON lines: a header, then a line a record."""
        return "".join(self._lines())

    @staticmethod
    def of_text(text: str, source: object = "this text") -> Trace:
        """The trace that `to_text` wrote. Errors: `UserError` naming the line of `source` that cannot be read."""
        header, spans, levels, marks = trace_file.parsed(text, source)
        return Trace(header["name"], spans, levels, marks, header["clock"], header["backend"])

    def save(self, path: str | Path) -> Path:
        """Write `to_text`. Errors: `UserError` where the place cannot be written."""
        return trace_file.write(Path(path), self._lines())

    @staticmethod
    def load(path: str | Path) -> Trace:
        """The trace that `save` wrote. Errors: `UserError` naming the file and the line that cannot be read."""
        return Trace.of_text(trace_file.read(Path(path)), path)

    def _lines(self) -> Iterator[str]:
        header = {"name": self.name, "clock": self.clock, "backend": self.backend}
        return trace_file.lines(header, self.spans, self.levels, self.marks)

    def to_chrome(self) -> dict[str, JSON]:
        """Chrome's trace format, to be written as JSON and opened in Perfetto: a process a rank, a thread a stream."""
        return trace_file.chrome(self.name, self.spans, self.levels, self.marks)

    def describe(self, stable: bool = False) -> str:
        """The trace in two to six sentences; `stable=True` names exact facts (counts, bytes, order), no seconds."""
        return words(self, stable)
