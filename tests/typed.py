"""Schedules typed as drawings: `typed("0: 0F0 0F1\\n1: . 1F0", {"1F0": "0F0"})`."""

from collections.abc import Callable, Mapping, Sequence

from lt_core.base.action import Action, Op
from lt_core.base.schedule import Schedule

Lanes = list[list[Action]]


def lanes_of(drawing: str) -> Lanes:
    """The lanes of a staircase as `Schedule.grid` draws it: `.` is nothing, + joins what stands in one cell."""
    rows = [line.strip().partition(":") for line in drawing.strip().splitlines()]
    cells = [(int(rank), [c for c in row.replace("+", " ").split() if c != "."]) for rank, _, row in rows]
    return [[Action.parse(text.strip("!"), rank) for text in row] for rank, row in cells]


def found(lanes: Lanes, text: str) -> Action:
    """The action of that text; where several ranks have it, `text@rank`."""
    name, _, rank = text.partition("@")
    (action,) = [a for lane in lanes for a in lane if str(a) == name and (not rank or a.rank == int(rank))]
    return action


def typed(drawing: str, needs: Mapping[str, str] = {}, name: str = "typed") -> Schedule:
    """The schedule of a drawing; `needs` says in the same words what an action needs."""
    lanes = lanes_of(drawing)
    by = {found(lanes, a): tuple(found(lanes, n) for n in texts.split()) for a, texts in needs.items()}
    return Schedule(name, tuple(map(tuple, lanes)), by)


def pipeline(drawing: str, name: str = "pipeline") -> Schedule:
    """A drawing of a pipeline with its messages: each action needs what made its input, on its own rank."""
    lanes = lanes_of(drawing)
    return Schedule(name, tuple(map(tuple, lanes)), {a: _inputs(a, lane) for lane in lanes for a in lane})


def _inputs(a: Action, lane: Sequence[Action]) -> tuple[Action, ...]:
    wanted: Mapping[Op, Callable[[Action], list[tuple[Op, int]]]] = {
        Op.F: lambda a: [(Op.F, a.unit - 1), (Op.COPY_F, a.unit - 1)],
        Op.B: lambda a: [(Op.F, a.unit), (Op.B, a.unit + 1), (Op.COPY_B, a.unit + 1)],
        Op.SEND_F: lambda a: [(Op.F, a.unit)],
        Op.SEND_B: lambda a: [(Op.B, a.unit)],
    }
    sources = wanted[a.op](a) if a.op in wanted else []
    return tuple(b for b in lane if (b.op, b.unit) in sources and b.batch == a.batch)


def gpipe(stages: int, batches: int) -> Schedule:
    """All forwards, then all backwards in reverse."""
    rows = []
    for s in range(stages):
        row = []
        for b in range(batches):
            row += [f"{s - 1}COPY_F{b}<{s - 1}"] * (s > 0) + [f"{s}F{b}"] + [f"{s}SEND_F{b}>{s + 1}"] * (s < stages - 1)
        for b in reversed(range(batches)):
            row += [f"{s + 1}COPY_B{b}<{s + 1}"] * (s < stages - 1) + [f"{s}B{b}"] + [f"{s}SEND_B{b}>{s - 1}"] * (s > 0)
        rows.append(f"{s}: " + " ".join(row))
    return pipeline("\n".join(rows), "GPipe")
