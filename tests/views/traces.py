"""Traces made by hand, whose every number is known."""

from lt_core.base import Action, Op, Span, Trace


def ring(size: int, chunk_bytes: int = 1024, seconds: float = 1e-3, clock: str = "simulated") -> Trace:
    """A ring all-reduce in lock step: 2 (size - 1) rounds of one chunk sent and one received by each rank."""
    spans = []
    for k in range(2 * (size - 1)):
        for rank in range(size):
            take = Op.ADD if k < size - 1 else Op.COPY
            send = Action(Op.SEND, (rank - k) % size, k, rank, (rank + 1) % size)
            receive = Action(take, (rank - k - 1) % size, k, rank, (rank - 1) % size)
            for a in (send, receive):
                spans.append(Span(rank, a.op.stream, str(a), k * seconds, (k + 1) * seconds, chunk_bytes, a))
    return Trace("ring", spans, clock=clock, backend="" if clock == "simulated" else "gloo")


def pipeline(split: bool = False) -> Trace:
    """Two stages, two micro-batches: F and B (or I and W), then U, with a gap on each rank."""
    back = ["I", "W"] if split else ["B"]
    orders = [["F0", "F1", "", *(f"{v}{b}" for b in (0, 1) for v in back), "U0"]]
    orders += [["", "F0", *(f"{v}0" for v in back), "F1", *(f"{v}1" for v in back), "U0"]]
    spans = []
    for rank, order in enumerate(orders):
        for at, name in enumerate(order):
            if name:
                a = Action.parse(f"{rank}{name}", rank)
                spans.append(Span(rank, "compute", str(a), float(at), float(at + 1), 0, a))
    return Trace("1F1B", spans, clock="simulated")
