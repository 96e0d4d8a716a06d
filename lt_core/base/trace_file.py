"""A trace as text, to lie on disk or to travel: JSON lines of our own, and chrome's format, which Perfetto opens."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from lt_core.base.action import Action
from lt_core.base.errors import UserError
from lt_core.base.records import JSON, Level, Mark, Span


def lines(
    header: dict[str, str], spans: Iterable[Span], levels: Iterable[Level], marks: Iterable[Mark]
) -> Iterator[str]:
    """One JSON object a line: the header, then every record."""
    return (f"{json.dumps(record, allow_nan=True)}\n" for record in _records(header, spans, levels, marks))


def write(path: Path, text: Iterable[str]) -> Path:
    """Put lines on disk, all or none. Errors: a place that cannot be written, or a full disk."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.writelines(text)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise UserError(
            f"{path} was not written", error.strerror or error, attempt="another folder, or free space"
        ) from error
    return path


def _records(
    header: dict[str, str], spans: Iterable[Span], levels: Iterable[Level], marks: Iterable[Mark]
) -> Iterator[Any]:
    yield {"trace": 1, **header}
    for s in spans:
        yield ["span", *s[:6], str(s.action) if s.action else None, s.run]
    yield from (["level", *x] for x in levels)
    yield from (["mark", *m] for m in marks)


def read(path: Path) -> str:
    """The text of a file that `write` made. Errors: it is not there, or no text."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"{path} is no trace", error, "a file that Trace.save wrote") from error


def parsed(text: str, source: object) -> tuple[dict[str, str], list[Span], list[Level], list[Mark]]:
    """Header, spans, levels and marks in the text of `lines`. Errors: the line of `source` that cannot be read."""
    spans: list[Span] = []
    levels: list[Level] = []
    marks: list[Mark] = []
    try:
        first, *rest = text.splitlines()
        header = json.loads(first)
        assert header["trace"] == 1
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise UserError(f"{source} is no trace", error, "a file that Trace.save wrote") from error
    makers: dict[str, Callable[[list[Any]], None]] = {
        "span": lambda v: spans.append(_span(v)),
        "level": lambda v: levels.append(Level(*v)),
        "mark": lambda v: marks.append(Mark(*v)),
    }
    for number, line in enumerate(rest, 2):
        try:
            kind, *values = json.loads(line)
            makers[kind](values)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise UserError(f"{source} line {number} cannot be read", line[:60], "a span, a level or a mark") from error
    return {k: str(header.get(k, "")) for k in ("name", "clock", "backend")}, spans, levels, marks


def _span(values: list[Any]) -> Span:
    rank, stream, name, start_s, end_s, nbytes, action, run = values
    return Span(rank, stream, name, start_s, end_s, nbytes, Action.parse(action, rank) if action else None, run)


def chrome(name: str, spans: list[Span], levels: list[Level], marks: list[Mark]) -> dict[str, JSON]:
    """Chrome's trace events in microseconds: a process a rank, a thread a stream, a counter an owner and module."""
    streams = sorted({(s.rank, s.stream) for s in spans})
    events: list[JSON] = [_named("process_name", r, 0, f"rank {r}") for r in sorted({r for r, _ in streams})]
    events += [_named("thread_name", r, streams.index((r, stream)), stream) for r, stream in streams]
    for s in spans:
        where = {"pid": s.rank, "tid": streams.index((s.rank, s.stream)), "ts": s.start_s * 1e6}
        details: JSON = {"bytes": s.nbytes, "run": s.run}
        events.append({"ph": "X", "name": s.name, "dur": (s.end_s - s.start_s) * 1e6, "args": details, **where})
    for x in levels:
        counter = f"{x.owner}: {x.module}" if x.module else x.owner
        events.append({"ph": "C", "name": counter, "pid": x.rank, "ts": x.at_s * 1e6, "args": {"bytes": x.live_bytes}})
    for m in marks:
        at: dict[str, JSON] = {"pid": m.rank, "tid": 0, "ts": m.at_s * 1e6, "args": {"value": m.value}}
        events.append({"ph": "i", "name": m.kind, "s": "p", **at})
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": {"name": name}}


def _named(what: str, rank: int, thread: int, name: str) -> JSON:
    return {"ph": "M", "name": what, "pid": rank, "tid": thread, "args": {"name": name}}
