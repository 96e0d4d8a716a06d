"""Collectives made of collectives: rounds among other ranks, at the same time, and the whole way back.

placed(ring.rounds(2), [1, 5], first=4, width=2)   a ring of two, of ranks 1 and 5, over chunks 4 5 and 6 7
beside(a, b)                                       round k of a and round k of b are one round
there_and_back(a, top)                             a, then top, then a backwards: whoever gave is told
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest

from lt_core.collectives.rounds import COPY, Message, Round


def placed(rounds: Iterable[Round], ranks: Sequence[int], first: int = 0, width: int = 1) -> list[Round]:
    """The same rounds: what rank r did is done by `ranks[r]`, chunk u is `width` chunks from `first + u width` on."""

    def there(m: Message) -> Message:
        return Message(ranks[m.sender], ranks[m.receiver], first + m.unit * width, m.take, m.count * width)

    return [[there(m) for m in messages] for messages in rounds]


def beside(*several: Sequence[Round]) -> list[Round]:
    """All of them at the same time, round by round."""
    return [[m for messages in together for m in messages] for together in zip_longest(*several, fillvalue=[])]


def there_and_back(up: Sequence[Round], top: Sequence[Round] = ()) -> list[Round]:
    """Rounds that sum upwards, what happens on top, and the same rounds backwards, in which each gets the result."""
    down = [[Message(m.receiver, m.sender, m.unit, COPY, m.count) for m in messages] for messages in reversed(up)]
    return [*up, *top, *down]
