"""The phases of a collective in words and numbers: what moved, who owns what, whether all ranks hold the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from lt_core.base.action import Op
from lt_core.views.phases import Cell, Message, Phase, Phases

SPOKEN = 8  # messages, owners or numbers that a sentence lists
Names = Mapping[Op, str]


def after(phase: Phase) -> str:
    """`start`, or `round 2`."""
    return f"round {phase.round}" if phase.round >= 0 else "start"


def part(phase: Phase, names: Names) -> str:
    """What a round is called by what its receivers do: `reduce-scatter`, or both names where they do both."""
    return " and ".join(names[op] for op in phase.ops())


def number_text(number: float) -> str:
    """`1,110` where it is a whole number that fits, else four digits."""
    return f"{number:,.0f}" if abs(number) < 1e6 and number % 1 == 0 else f"{number:,.4g}"


def value(several: Phases, number: int, cell: Cell) -> str:
    """A cell's first element; `60 …` where there are more, `–` where there is none."""
    numbers = several.phases[number].values[cell]
    return number_text(numbers[0]) + (" …" if len(numbers) > 1 else "") if numbers else "–"


def arrived(several: Phases, number: int, cell: Cell) -> str:
    """What came to a cell in this round: `+20`, `copy`, or nothing."""
    texts: list[str] = []
    for m in several.phases[number].messages:
        for source, target in zip(m.cells(m.sender), m.cells(m.receiver)):
            if target == cell:
                texts.append("copy" if m.op is Op.COPY else f"+{value(several, number - 1, source)}")
    return " ".join(texts)


def phase_words(several: Phases, number: int, names: Names) -> str:
    """One phase: each message with what became of it; of the last one also who owns what."""
    phase = several.phases[number]
    if phase.round < 0:
        own = f"{several.ranks} ranks holds its own {_count(several.chunks, 'chunk')}"
        said = f"At the start each of {own}; those of rank 0 are {_row(several, number, 0)}."
    else:
        moved = _listed([_message(several, number, m) for m in phase.messages], "; ")
        said = f"After round {phase.round}, {part(phase, names)}: {moved}." if moved else "In this round nothing moved."
    if number < len(several.phases) - 1:
        return said
    return f"{said} {_first_up(_owners(several, number))}"


def whole_words(several: Phases, names: Names) -> str:
    """All phases: what each part of the rounds did, and what stood at its end."""
    rounds = _count(sum(p.round >= 0 for p in several.phases), "round")
    size = (
        f"{_count(several.ranks, 'rank')}, {_count(several.elements, 'element')} in {_count(several.chunks, 'chunk')}"
    )
    sentences = [f"{several.name}: {size}, {rounds}."]
    for run in stretches(several):
        first, last = several.phases[run[0]], several.phases[run[-1]]
        where = f"round {first.round}" if len(run) == 1 else f"rounds {first.round} to {last.round}"
        messages = _count(sum(len(several.phases[k].messages) for k in run), "message")
        sentences.append(f"{_first_up(part(first, names))}, {where}, {messages}.")
        sentences.append(f"After round {last.round} {_owners(several, run[-1])}")
    return " ".join([*sentences, *_twice(several)])


def stretches(several: Phases) -> list[list[int]]:
    """The phases in which something moves; those that follow each other and do the same are one stretch."""
    moving = [k for k, p in enumerate(several.phases) if p.messages]
    return [list(run) for _, run in groupby(moving, lambda k: several.phases[k].ops())]


def rows(several: Phases, numbers: Iterable[int]) -> tuple[tuple[str, ...], ...]:
    """These phases as a table, a line a rank; `✓` stands behind what is finished."""
    made = [("after", "rank", *(f"chunk {c}" for c in range(several.chunks)))]
    for k in numbers:
        done = several.finished(k)
        for r in range(several.ranks):
            cells = [value(several, k, (r, c)) + " ✓" * ((r, c) in done) for c in range(several.chunks)]
            made.append((after(several.phases[k]), str(r), *cells))
    return tuple(made)


def _message(several: Phases, number: int, m: Message) -> str:
    what = f"chunk {m.unit}" if m.chunks == 1 else f"chunks {m.unit} to {m.unit + m.chunks - 1}"
    sent, target = f"rank {m.sender} sends {what} to rank {m.receiver}", (m.receiver, m.unit)
    done = ", finished" if several.finished(number).issuperset(m.cells(m.receiver)) else ""
    if m.chunks > 1:
        return f"{sent}, which {'adds' if m.op is Op.ADD else 'keeps'} them{done}"
    if m.op is Op.COPY:
        return f"{sent}, which keeps {value(several, number, target)}{done}"
    held, came = value(several, number - 1, target), arrived(several, number, target).replace("+", "+ ")
    return f"{sent}, {held} {came} = {value(several, number, target)}{done}"


def _owners(several: Phases, number: int) -> str:
    """Who owns which finished chunks; at the end whether all ranks hold the same, by the values of the run."""
    done = several.finished(number)
    if done == several.full():
        values = several.phases[number].values
        rank_rows = {str([values[r, c] for c in range(several.chunks)]) for r in range(several.ranks)}
        same = "the same on every rank" if len(rank_rows) == 1 else "but NOT the same on every rank; rank 0 has"
        return f"every rank owns every finished chunk, {same}: {_row(several, number, 0)}."
    texts = []
    for r in range(several.ranks):
        mine = [c for c in range(several.chunks) if (r, c) in done]
        full = [c for c in range(several.chunks) if (r, c) in several.full()]
        chunks = [f"{c} = {value(several, number, (r, c))}" for c in mine]
        if mine == full:
            texts.append(f"rank {r} owns every finished chunk, {_row(several, number, r)}")
        elif mine:
            texts.append(f"rank {r} owns chunk{'s' * (len(mine) > 1)} {_listed(chunks, ', ')}")
    return f"{_listed(texts, ', ') or 'no chunk is finished'}."


def _twice(several: Phases) -> list[str]:
    """A sentence where a rank's part went into the end more than once: a schedule that is wrong."""
    last = several.phases[-1].parts
    wrong = [(c, r) for (_, c), parts in sorted(last.items()) for r, times in enumerate(parts) if times > 1]
    return [f"Chunk {c} holds the part of rank {r} more than once." for c, r in wrong[:1]]


def _row(several: Phases, number: int, rank: int) -> str:
    return _listed([value(several, number, (rank, c)) for c in range(several.chunks)], ", ")


def _listed(texts: Sequence[str], between: str) -> str:
    return between.join(texts[:SPOKEN]) + (f"{between}and {len(texts) - SPOKEN} more" if len(texts) > SPOKEN else "")


def _first_up(text: str) -> str:
    return text[0].upper() + text[1:]


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
