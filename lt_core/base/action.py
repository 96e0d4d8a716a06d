"""One vocabulary for everything a rank can be told to do, and the record of one such order.

2F0          unit 2 computes its forward on micro-batch 0
3SEND2>1*4   units 3..6 are sent to rank 1 in round 2
3ADD2<0*4    ... and here is the other end: they come from rank 0 and are added
"""

from __future__ import annotations

import re
from enum import Enum, unique
from typing import NamedTuple

from lt_core.base.errors import UserError


@unique
class Op(Enum):
    """A verb, the stream of its rank on which it runs, and what it does."""

    F = "compute", "forward, everything kept for the backward"
    C = "compute", "forward, only the input kept (a checkpoint)"
    N = "compute", "forward, nothing kept"
    B = "compute", "whole backward"
    I = "compute", "backward, the gradient of the input"  # noqa: E741 - the literature's letter
    W = "compute", "backward, the gradient of the weights"
    U = "compute", "update: a version of the weights is the number of updates before it"
    SEND_F = "out", "send a stage's output"
    COPY_F = "in", "receive a stage's output"
    SEND_B = "out", "send the gradient of a stage's input"
    COPY_B = "in", "receive the gradient of a stage's input"
    SEND = "out", "send a chunk"
    ADD = "in", "receive a chunk and add it"
    COPY = "in", "receive a chunk in place of one's own"
    GATHER = "in", "gather a unit's shards from all ranks"
    SCATTER = "out", "reduce a unit's gradient and keep one's own shard"
    OUT = "d2h", "move from the device to the host"
    IN = "h2d", "move from the host to the device"
    DROP = "free", "forget what a forward kept"
    FREE = "free", "give back memory"

    stream: str
    meaning: str
    what: str  # SEND_B and COPY_B carry B

    def __init__(self, stream: str, meaning: str) -> None:
        self.stream, self.meaning = stream, meaning
        self.what = self._name_.partition("_")[2]

    __hash__ = object.__hash__  # Enum's own runs in Python: three times slower where millions of actions are keys


class Action(NamedTuple):
    """One order to one rank. An action occurs once in a schedule.

    unit: the piece it works on: a stage, a layer or a chunk; of a message, the stage that made it.
    batch: micro-batch, round of a collective, or how often this unit was computed before.
    peer: the other end of a transfer, -1 where there is none.  count: consecutive units in one message.
    """

    op: Op
    unit: int
    batch: int = 0
    rank: int = 0
    peer: int = -1
    count: int = 1  # type: ignore[assignment]  # the field hides tuple.count, which nobody asks an action for

    @property
    def wire(self) -> bool:
        """Whether it is one end of a transfer."""
        return self.peer >= 0

    @property
    def transfer(self) -> tuple[int, int, int, int, str]:
        """(sender, receiver, unit, batch, what): equal for the two ends of one transfer."""
        if self.op.stream == "out":
            return self.rank, self.peer, self.unit, self.batch, self.op.what
        return self.peer, self.rank, self.unit, self.batch, self.op.what

    def __str__(self) -> str:
        text = f"{self.unit}{self.op._name_}{self.batch}"
        if self.peer >= 0:
            text += f"{'>' if self.op.stream == 'out' else '<'}{self.peer}"
        return f"{text}*{self.count}" if self.count > 1 else text

    @staticmethod
    def parse(text: str, rank: int) -> Action:
        """The action that `str` wrote; errors: a text that is no action, an arrow against the verb's direction."""
        found = re.fullmatch(r"(\d+)([A-Z_]+)(\d+)(?:([<>])(\d+))?(?:\*(\d+))?", text)
        if not found or found[2] not in Op.__members__:
            raise UserError(
                f"{text!r} is no action", expected="like 2F0 or 3SEND2>1*4", attempt=", ".join(Op.__members__)
            )
        unit, name, batch, arrow, peer, count = found.groups()
        op = Op[name]
        if arrow and {"out": ">", "in": "<"}.get(op.stream) != arrow:
            raise UserError(
                f"{text!r} points the wrong way", got=arrow, expected=f"{name} runs on the stream {op.stream}"
            )
        return Action(op, int(unit), int(batch), rank, int(peer) if peer else -1, int(count or 1))
