"""One direction between two ranks: a ring of pieces in the sender's outbox, which it fills and the receiver empties.

head   how many pieces were put in (the sender's)         [ piece 4 | piece 5 | . . . . | piece 3 ]
tail   how many were taken out (the receiver's)                        head = 6 ^         ^ tail = 3
"""

from __future__ import annotations

from torch import Tensor

from lt_core.comm.shared_memory.room import HEAD, RECORDS, SLOTS, TAIL, Room, slot_bytes
from lt_core.comm.shared_memory.waits import fence


class Link:
    """The way from `sender` to `receiver`. Whoever puts must be the one, whoever takes the other."""

    def __init__(self, room: Room, sender: int, receiver: int) -> None:
        self._words, self._slots, self.piece_bytes = room.words, room.slots(sender, receiver), slot_bytes(room.size)
        self._head = room.link(sender, receiver) + HEAD
        self._tail = room.link(receiver, sender) + TAIL

    def put(self, message: Tensor, first: int) -> int:
        """Put in the piece of a message (bytes) that begins at `first`; how many bytes that was, 0 if it is full."""
        words, head = self._words, self._words[self._head]
        if head - words[self._tail] == SLOTS:
            return 0
        fence()  # it was read before we write there again
        piece = message[first : first + self.piece_bytes]
        self._slots[head % SLOTS][: piece.numel()].copy_(piece)
        words[self._head + RECORDS + head % SLOTS] = message.numel()
        fence()
        words[self._head] = head + 1
        return piece.numel()

    def coming(self) -> int:
        """How many bytes the message has whose next piece lies there; 0 if none does."""
        tail = self._words[self._tail]
        if self._words[self._head] == tail:
            return 0
        fence()
        return self._words[self._head + RECORDS + tail % SLOTS]

    def take(self, buffer: Tensor, first: int) -> int:
        """Take the next piece out, which lies there, into `buffer` from `first` on; how many bytes that was."""
        tail = self._words[self._tail]
        piece = buffer[first : first + self.piece_bytes]
        piece.copy_(self._slots[tail % SLOTS][: piece.numel()])
        fence()
        self._words[self._tail] = tail + 1
        return piece.numel()
