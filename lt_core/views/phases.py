"""The phases of a collective that was recorded: what moved in each round, and what each rank held after it.

Read from the marks "chunk table" of a Trace: the values are those of the run; which ranks' parts are in a chunk follows
from the messages: ADD joins the sender's parts to one's own, COPY puts them in their place. No technique is known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lt_core.base.action import Action, Op
from lt_core.base.errors import UserError
from lt_core.base.records import Mark
from lt_core.base.trace import Trace

KIND = "chunk table"
Parts = tuple[int, ...]  # how often each rank's part is in a chunk
Cell = tuple[int, int]  # rank, chunk


class Message(NamedTuple):
    """What `receiver` took from `sender`: chunks from `unit` on, to add to its own (ADD) or to keep (COPY)."""

    sender: int
    receiver: int
    unit: int
    chunks: int
    op: Op

    def cells(self, rank: int) -> list[Cell]:
        """Its chunks as they stand on a rank."""
        return [(rank, self.unit + k) for k in range(self.chunks)]


class Phase(NamedTuple):
    """After a round (-1: before anything moved): its messages, each cell's first elements, and whose parts it holds."""

    round: int
    messages: tuple[Message, ...]
    values: Mapping[Cell, tuple[Any, ...]]
    parts: Mapping[Cell, Parts]

    def ops(self) -> list[Op]:
        """What its receivers do, each verb once."""
        return [op for op in (Op.ADD, Op.COPY) if any(m.op is op for m in self.messages)]


class Phases(NamedTuple):
    """A recorded collective: the phases in order, the size of its table, the elements of its tensor, and whose parts
    each chunk holds where it is finished."""

    name: str
    ranks: int
    chunks: int
    elements: int
    phases: tuple[Phase, ...]
    goal: Mapping[int, Parts]

    def full(self) -> set[Cell]:
        """The cells that have elements: a chunk has none where ranks are more than elements."""
        return {cell for cell, numbers in self.phases[0].values.items() if numbers}

    def finished(self, number: int) -> set[Cell]:
        """The cells that hold, after phase `number`, all that they are to hold."""
        parts = self.phases[number].parts
        return {cell for cell in self.full() if parts[cell] == self.goal[cell[1]]}


def phases(trace: Trace) -> Phases:
    """The phases that `trace`, merged from all ranks', has chunk tables of. Errors: none, a rank without, two runs."""
    marks = [m for m in trace.marks if m.kind == KIND]
    ranks = _checked(trace.name, marks)
    first = _value(marks[0])
    rounds = sorted({_value(m)["round"] for m in marks})
    before = Phase(-1, (), {}, {(r, c): _own(r, ranks) for r in range(ranks) for c in range(len(first["table"]))})
    made: list[Phase] = []
    for number in rounds:
        before = _next(before, number, [m for m in marks if _value(m)["round"] == number])
        made.append(before)
    return Phases(trace.name, ranks, len(first["table"]), first["elements"], tuple(made), _goal(made[-1], ranks))


def _goal(last: Phase, ranks: int) -> dict[int, Parts]:
    """What most ranks' parts went into at the end; of several such, what most ranks hold."""
    at_end = {c: Counter(last.parts[r, c] for r in range(ranks)) for _, c in last.parts}
    return {c: max(found, key=lambda p: (sum(map(bool, p)), found[p])) for c, found in at_end.items()}


def _checked(name: str, marks: Sequence[Mark]) -> int:
    """How many ranks the marks are of."""
    starts = Counter(m.rank for m in marks if _value(m)["round"] < 0)
    peers = {m.sender for mark in marks for m in _messages(mark)}
    ranks = max({*starts, *peers}, default=-1) + 1
    attempt = "all_reduce(..., trace, watch=chunk_table) on every rank, then Trace.merge"
    if not ranks:
        raise UserError(f"{name} has no chunk tables to step through", f"{len(marks)} of them", attempt=attempt)
    if absent := [r for r in range(ranks) if not starts[r]]:
        raise UserError(f"{name}: no chunk table of rank {', '.join(map(str, absent))}", attempt=attempt)
    if max(starts.values()) > 1:
        raise UserError(f"{name} holds more than one run", f"{max(starts.values())} starts", "one Trace a run")
    return ranks


def _value(mark: Mark) -> dict[str, Any]:
    if not isinstance(mark.value, dict) or {"round", "actions", "elements", "table"} - set(mark.value):
        raise UserError(f"rank {mark.rank} left a mark that is no chunk table", mark.value, "one that chunk_table made")
    return mark.value


def _messages(mark: Mark) -> Iterator[Message]:
    for a in (Action.parse(text, mark.rank) for text in _value(mark)["actions"]):
        if a.op in (Op.ADD, Op.COPY):
            yield Message(a.peer, a.rank, a.unit, a.count, a.op)


def _next(before: Phase, number: int, marks: Sequence[Mark]) -> Phase:
    """The phase after `before`. Messages carry what stood before any of them arrived."""
    messages = tuple(sorted((m for mark in marks for m in _messages(mark)), key=lambda m: m[:3]))
    values, parts = dict(before.values), dict(before.parts)
    for mark in marks:
        values |= {(mark.rank, c): tuple(numbers) for c, numbers in enumerate(_value(mark)["table"])}
    for m in messages:
        for source, target in zip(m.cells(m.sender), m.cells(m.receiver)):
            came = before.parts[source]
            parts[target] = tuple(map(sum, zip(parts[target], came))) if m.op is Op.ADD else came
    return Phase(number, messages, values, parts)


def _own(rank: int, ranks: int) -> Parts:
    return tuple(int(r == rank) for r in range(ranks))
