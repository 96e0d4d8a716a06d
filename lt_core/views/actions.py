"""How an action looks in a picture: its fill, and the few characters that fit in a bar."""

from __future__ import annotations

from collections.abc import Iterable

from lt_core.base.action import Action, Op
from lt_core.base.errors import UserError
from lt_core.base.records import Span
from lt_core.base.waits import WAITING_FOR
from lt_core.views.style import BACKWARD, COLLECTIVE, FILL_OF, FORWARD, OTHER, UPDATE, WAITING, WORK, Fill

CHUNKS = (Op.SEND, Op.ADD, Op.COPY, Op.GATHER, Op.SCATTER)
PLAIN = (Op.F, Op.B, Op.I, Op.W)  # their fills name them, so a bar has room for the micro-batch


def action_of(span: Span) -> Action | None:
    """The action of a span: its own, or the one that its name spells."""
    if span.action is not None:
        return span.action
    try:
        return Action.parse(span.name, span.rank)
    except UserError:  # a name in plain words is no fault: it is drawn as it is
        return None


def fill_of(action: Action) -> Fill:
    """The fill of an action's kind."""
    return FILL_OF[action.op]


def fill_of_words(span: Span) -> Fill:
    """The fill of a span in plain words: it waits, it is named as a fill is, or what its stream is for."""
    if span.name.startswith(WAITING_FOR):
        return WAITING
    named = {fill.name: fill for fill in (FORWARD, BACKWARD, UPDATE)}
    if span.name in named:
        return named[span.name]
    return {"compute": WORK, "out": COLLECTIVE, "in": COLLECTIVE}.get(span.stream, OTHER)


def crowded(actions: Iterable[Action]) -> set[int]:
    """The ranks that compute more than one unit."""
    units: dict[int, set[int]] = {}
    for a in actions:
        if a.op.stream == "compute":
            units.setdefault(a.rank, set()).add(a.unit)
    return {rank for rank, mine in units.items() if len(mine) > 1}


def short(a: Action, several: bool = False) -> str:
    """What fits in a bar: the chunk that moves, or the micro-batch: `2F0` where a rank has `several` stages, `C0` where
    the fill does not tell the verb."""
    if a.op in CHUNKS:
        return str(a.unit) if a.count == 1 else f"{a.unit}–{a.unit + a.count - 1}"
    if a.peer >= 0 or (a.op in PLAIN and not several):
        return str(a.batch)
    return f"{a.unit if several else ''}{a.op.name}{a.batch}"


def with_peer(a: Action, several: bool = False) -> str:
    """The same with the other end of a transfer: `2→1` is sent to rank 1, `2←3` comes from rank 3."""
    arrow = "→" if a.op.stream == "out" else "←"
    return short(a, several) + (f"{arrow}{a.peer}" if a.peer >= 0 else "")
