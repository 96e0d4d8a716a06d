"""Policies to drive: servers which answer asynchronously, with bounded staleness, and over a wire."""

from lt_core.base.action import Action, Op


class Asynchronous:
    """Each worker computes a gradient of the newest weights, over and over; `unit` is the version it read."""

    def __init__(self, workers):
        self.size, self.version = workers, 0
        self.clock = [0] * workers
        self.staleness = [[] for _ in range(workers)]

    def next(self, rank):
        return Action(Op.F, self.version, self.clock[rank], rank)

    def done(self, action):
        self.staleness[action.rank].append(self.version - action.unit)
        self.version += 1
        self.clock[action.rank] += 1


class StaleSynchronous(Asynchronous):
    """No worker starts a clock more than `slack` ahead of the slowest."""

    def __init__(self, workers, slack):
        super().__init__(workers)
        self.slack, self.gap = slack, 0

    def next(self, rank):
        return None if self.clock[rank] - min(self.clock) > self.slack else super().next(rank)

    def done(self, action):
        super().done(action)
        self.gap = max(self.gap, max(self.clock) - min(self.clock))


class OverTheWire:
    """Workers compute, push to the server (the last rank) and pull; it takes pushes as they come."""

    def __init__(self, workers):
        self.workers, self.size, self.version = workers, workers + 1, 0
        self.step, self.clock = [Op.F] * workers, [0] * workers
        self.pushed, self.answer = [], None

    def next(self, rank):
        if rank == self.workers:
            return self._serve()
        k, step = self.clock[rank], self.step[rank]
        if step is Op.F:
            return Action(Op.F, 0, k, rank)
        if step is Op.SEND:
            self.pushed.append(rank)
        return Action(step, 0 if step is Op.SEND else 1, k, rank, self.workers)

    def _serve(self):
        if self.answer is not None:
            return Action(Op.SEND, 1, self.clock[self.answer], self.workers, self.answer)
        if self.pushed:
            return Action(Op.ADD, 0, self.clock[self.pushed[0]], self.workers, self.pushed[0])
        return None

    def done(self, action):
        if action.rank == self.workers:
            if action.op is Op.ADD:
                self.answer, self.version = self.pushed.pop(0), self.version + 1
            else:
                self.answer = None
            return
        follows = {Op.F: Op.SEND, Op.SEND: Op.COPY, Op.COPY: Op.F}
        self.step[action.rank] = follows[action.op]
        self.clock[action.rank] += action.op is Op.COPY
