"""What a parameter server costs, and how old its gradients are, in closed form.

N workers, K servers, n elements in T tensors, w bytes an element; a part has n / K elements and the pieces of tensors
that lie in it.  tau: updates between reading the weights and applying their gradient.

    bytes     a server sends N w n / K and takes N w (n + pieces) / K for one gradient of each worker
    seconds   m = latency + w n / (K bandwidth), a message; a server sends N of them and takes N. The first worker has
              all its parts after f = N - N / K + 1 messages, for they come in turns: max(N m, f m + computing) + N m
    tau       N - 1 for equal workers; 0 for one
    step      stable on a curvature of L if and only if step <= 2 sin(pi / (4 tau + 2)) / L
    momentum  asynchrony has one of its own, 1 - 1 / N, and an optimizer's momentum comes on top (Mitliagkas 2016)
"""

from __future__ import annotations

import math

from lt_core.base.cluster import Wire
from lt_core.base.errors import UserError
from lt_core.data_parallel.parameter_server.layout import Layout


def law_bytes(layout: Layout, workers: int, rank: int) -> int:
    """How many bytes `rank` sends while each worker computes one gradient; servers stand behind the workers."""
    if rank < workers:
        return layout.dtype.itemsize * sum(layout.message(k) for k in range(layout.parts))
    low, high = layout.bounds(rank - workers)
    return layout.dtype.itemsize * workers * (high - low)


def law_messages(layout: Layout, workers: int, rank: int) -> int:
    """How many messages that is: one to each server, or one to each worker."""
    return layout.parts if rank < workers else workers


def law_seconds(workers: int, servers: int, nbytes: int, wire: Wire, compute_s: float) -> float:
    """How long a synchronous round takes, exactly so where parts are even and `workers` is a multiple of `servers`.

    nbytes: of the whole model. The few numbers that travel beside a gradient are left out.
    """
    message_s = wire.latency_s + nbytes / servers / wire.bytes_per_s
    first = workers - workers // servers + 1
    return max(workers * message_s, first * message_s + compute_s) + workers * message_s


def law_staleness(seconds: list[float]) -> list[float]:
    """The mean tau of each worker under an asynchronous server that takes no time, from its seconds a gradient.

    While worker r computes one gradient, worker q brings seconds[r] / seconds[q] of them.
    """
    if not seconds or min(seconds) <= 0:
        raise UserError("staleness needs seconds of each worker", seconds, "numbers above 0")
    return [sum(s / other for q, other in enumerate(seconds) if q != r) for r, s in enumerate(seconds)]


def law_stable_step(tau: int, curvature: float = 1.0) -> float:
    """The largest step for which w <- w - step * curvature * (w, tau updates ago) does not grow (Yang and others 2021).

    tau 0: 2; 1: 1; 2: 0.618; 3: 0.445; 10: 0.149, each divided by the curvature.
    """
    if tau < 0 or curvature <= 0:
        raise UserError("no stable step", f"tau {tau}, curvature {curvature}", "tau from 0, a curvature above 0")
    return 2 * math.sin(math.pi / (4 * tau + 2)) / curvature


def law_momentum(workers: int) -> float:
    """The momentum that asynchrony brings by itself, 1 - 1 / N, where any worker may come next, each as likely.

    The mean over all orders moves as E w' - E w = momentum (E w - E w before) - step / N E g (Mitliagkas and others
    2016, "Asynchrony begets momentum"): a server whose optimizer has momentum as well should have less of it.
    """
    if workers < 1:
        raise UserError("momentum of no workers", workers, "at least 1")
    return 1 - 1 / workers
