"""Who does what next between workers and servers, whatever the rule; the same text for a virtual clock and real ranks.

worker r    COPY <-w-- F(w) --g--> SEND   COPY <-w-- ...         ranks 0 .. N - 1
server k         SEND       ADD U             SEND               ranks N .. N + K - 1, server k has part k of w

With K servers a worker reads and pushes K parts, beginning at another server than its neighbour, so that none queues.
A weight's version is the number of updates (U) before it. A gradient that comes and is dropped is a COPY, not an ADD.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from lt_core.base.action import Action, Op
from lt_core.base.errors import UserError
from lt_core.data_parallel.parameter_server.book import Book, Rule


class ParameterServer:
    """The policy. fetch_every, push_every: read before, and push after, every so many gradients of a worker.

    updates: once a server has made so many, no gradient is begun; those that were are still applied. Then it is over.
    """

    def __init__(
        self,
        workers: int,
        rule: Rule,
        servers: int = 1,
        fetch_every: int = 1,
        push_every: int = 1,
        updates: int | None = None,
    ) -> None:
        for what, n in (
            ("workers", workers),
            ("servers", servers),
            ("fetch_every", fetch_every),
            ("push_every", push_every),
        ):
            if not isinstance(n, int) or n < 1:
                raise UserError(f"a parameter server cannot have {what} {n}", expected="at least 1")
        if updates is not None and (not isinstance(updates, int) or updates < 0):
            raise UserError("a run has so many updates", updates, "0 or more, or None for a run without end")
        if push_every % fetch_every and rule.once_a_read:
            got = f"fetch_every {fetch_every}, push_every {push_every}"
            raise UserError("this rule wants one push for each read", got, "push_every a multiple of fetch_every")
        self.workers, self.servers, self.rule, self.updates = workers, servers, rule, updates
        self.fetch_every, self.push_every = fetch_every, push_every
        self.books = [Book(workers) for _ in range(servers)]
        self._begun = [0] * workers  # gradients that each worker has begun
        self._steps: list[deque[Action]] = [deque() for _ in range(workers)]
        self._busy: set[int] = set()  # workers that will push what they have begun
        self._dropped: set[tuple[int, int]] = set()  # (server, worker) of pushes that come too late
        self._asking: list[deque[Action]] = [deque() for _ in range(servers)]  # reads that wait for the server's end
        self._pushing: list[deque[Action]] = [deque() for _ in range(servers)]

    @property
    def size(self) -> int:
        """Workers, then servers."""
        return self.workers + self.servers

    @property
    def version(self) -> int:
        """The newest version that any server has made."""
        return max(book.version for book in self.books)

    @property
    def closing(self) -> bool:
        """Whether no gradient is begun any more: the updates are made, or the last of them is due."""
        made = max(book.version + self.rule.due(book) for book in self.books)
        return self.updates is not None and made >= self.updates

    def next(self, rank: int) -> Action | None:
        """What a worker or a server does now."""
        return self._work(rank) if rank < self.workers else self._serve(rank - self.workers)

    def done(self, action: Action) -> None:
        """The books say what has happened. A push is over for its worker first, so there it is written down: what the
        worker asks next must not be answered as if its gradient had not come."""
        if action.op is Op.U:
            self.books[action.unit].updates()
        elif action.op is Op.SEND and action.rank < self.workers:
            self.books[action.unit].takes(action.rank, keep=(action.unit, action.rank) not in self._dropped)
            self._dropped.discard((action.unit, action.rank))
            if not self._steps[action.rank]:
                self._busy.discard(action.rank)

    def _work(self, rank: int) -> Action | None:
        steps = self._steps[rank]
        if not steps:
            steps.extend(self._until_push(rank, self._begun[rank]))
        if (self.closing and rank not in self._busy) or not self._allowed(steps[0]):
            return None
        self._busy.add(rank)
        a = steps.popleft()
        if a.op is Op.F:
            self._begun[rank] += 1
            return a._replace(unit=self.books[0].read[rank])
        (self._pushing if a.op is Op.SEND else self._asking)[a.unit].append(a)
        return a

    def _until_push(self, rank: int, clock: int) -> Iterator[Action]:
        """All that a worker does from gradient `clock` on until it has pushed."""
        turn = [(rank + k) % self.servers for k in range(self.servers)]
        for batch in range(clock, clock + self.push_every):
            if batch % self.fetch_every == 0:
                yield from (Action(Op.COPY, k, batch, rank, self.workers + k) for k in turn)
            yield Action(Op.F, 0, batch, rank)
        yield from (Action(Op.SEND, k, batch, rank, self.workers + k) for k in turn)

    def _allowed(self, a: Action) -> bool:
        if a.op is Op.COPY:
            return self.rule.may_read(self.books[a.unit], a.rank)
        return a.op is Op.F or self.closing or self.rule.may_push(self.books[a.unit], a.rank)

    def _serve(self, k: int) -> Action | None:
        book, here = self.books[k], self.workers + k
        if self.rule.due(book) or (book.held and self._drained()):
            return Action(Op.U, k, book.version, here)
        if self._asking[k]:
            a = self._asking[k].popleft()
            book.reads(a.rank)
            return Action(Op.SEND, k, a.batch, here, a.rank)
        if self._pushing[k]:
            a = self._pushing[k].popleft()
            if self.rule.keeps(book, a.rank):
                return Action(Op.ADD, k, a.batch, here, a.rank)
            self._dropped.add((k, a.rank))
            return Action(Op.COPY, k, a.batch, here, a.rank)
        return None

    def _drained(self) -> bool:
        """Whether all workers have stopped: what is held now waits for nobody."""
        return self.closing and not self._busy
