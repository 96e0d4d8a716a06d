"""Every collective is rounds of messages, and one rule turns rounds into a schedule.

    round 0   0 --chunk 2--> 1     [Message(0, 1, 2, ADD)]     rank 0: 2SEND0>1     rank 1: 2ADD0<0
    round 1   1 --chunk 2--> 2     [Message(1, 2, 2, ADD)]     rank 1: 2SEND1>2     rank 2: 2ADD1<1

A message of all p chunks of a tensor is `Message(1, 0, 0, ADD, count=p)`.

An action of a round needs its rank's actions of the round before [1]: so a rank's sends and receives of one round start
together, and nobody waits for a rank it has nothing to do with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from lt_core.base.action import Action, Op
from lt_core.base.collector import collector_paused
from lt_core.base.errors import UserError
from lt_core.base.schedule import Schedule

__all__ = ["ADD", "COPY", "Message", "Round", "of_rounds"]

ADD, COPY = Op.ADD, Op.COPY


class Message(NamedTuple):
    """`count` chunks from `unit` on go from `sender` to `receiver`, which does `take` with them: ADD or COPY."""

    sender: int
    receiver: int
    unit: int
    take: Op
    count: int = 1  # type: ignore[assignment]  # the field hides tuple.count, which nobody asks a message for

    def ends(self, number: int) -> tuple[Action, Action]:
        """What the sender and what the receiver do in round `number`."""
        send = Action(Op.SEND, self.unit, number, self.sender, self.receiver, self.count)
        return send, Action(self.take, self.unit, number, self.receiver, self.sender, self.count)


Round = list[Message]


@collector_paused()
def of_rounds(name: str, size: int, rounds: Iterable[Round]) -> Schedule:
    """The schedule of these rounds for `size` ranks; `batch` of an action is its round.

    Errors: fewer than one rank, a message from or to a rank that is not there.
    """
    if size < 1:
        raise UserError(f"{name} needs ranks", f"{size} ranks", "at least 1")
    lanes: list[list[Action]] = [[] for _ in range(size)]
    needs: dict[Action, tuple[Action, ...]] = {}
    before: dict[int, tuple[Action, ...]] = {}
    for number, messages in enumerate(rounds):
        for rank, actions in _by_rank(name, size, number, messages).items():
            lanes[rank] += actions
            needs |= dict.fromkeys(actions, before.get(rank, ()))  # [1]
            before[rank] = tuple(actions)
    return Schedule(name, tuple(map(tuple, lanes)), needs)


def _by_rank(name: str, size: int, number: int, messages: Round) -> dict[int, list[Action]]:
    """What each rank does in a round, its sends first: they carry what stood there before anything arrives."""
    sends, takes = zip(*(m.ends(number) for m in messages), strict=True) if messages else ((), ())
    mine: dict[int, list[Action]] = {}
    for action in (*sends, *takes):
        if not 0 <= action.rank < size:
            raise UserError(
                f"{name} has no rank {action.rank}", f"{action} in round {number}", f"ranks 0 to {size - 1}"
            )
        mine.setdefault(action.rank, []).append(action)
    return mine
