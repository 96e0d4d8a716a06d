"""Overlapped data parallelism: a bucket leaves as soon as its last gradient is there, and travels while the rest of the
backward is computed. Only what is ready at the very end has nothing left to hide behind.

    compute  |forward|backward 4|3  |2  |1  |  |step|      [1] a hook on every parameter fills its bucket
    wire                        | 4   | 3   | 2   | 1 |    [2] full buckets leave, in one order on all ranks
                                              tail         [3] sync waits for what is still under way

Law: bucket k takes backward_k to compute and wire_k to travel; bytes and messages are those of `bucketed`.
    seconds   forward + max over k of (backward_0 + .. + backward_k + wire_k + .. + wire_last)

Paper: Li and others 2020, "PyTorch Distributed", section 3.2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from torch import nn
from torch.utils.hooks import RemovableHandle

from lt_core.base.trace import Trace
from lt_core.collectives.reducer import Reducer
from lt_core.comm.comm import Comm
from lt_core.data_parallel.replicate.bucketed import law_bytes, law_messages
from lt_core.data_parallel.replicate.buckets import BUCKET_BYTES, in_backward_order
from lt_core.data_parallel.replicate.carriers import Beside, Carrier, Landed, Summed
from lt_core.data_parallel.replicate.flat import Bucket
from lt_core.data_parallel.replicate.replica import Replica
from lt_core.data_parallel.replicate.roll import Roll, call_roll

__all__ = ["Overlapped", "law_bytes", "law_messages", "law_seconds", "replicate"]


def replicate(
    model: nn.Module,
    comm: Comm,
    reducer: Reducer | None = None,
    bucket_bytes: int = BUCKET_BYTES,
    trace: Trace | None = None,
) -> Overlapped:
    """The replica of a model that all ranks train together; its `sync()` belongs between backward and step.

    Between backward and `sync()` gradients are under way and `.grad` is empty: not `zero_grad` drops them, `forget()`
    does. Without a reducer buckets are summed by the communicator's own all-reduce, in place. A reducer works on a
    thread beside the backward; until `sync()` nobody else may use its communicator. Else arguments and errors are
    those of `bucketed.replicate`.
    """
    return Overlapped(model, comm, reducer, bucket_bytes, trace)


class Overlapped(Replica):
    """Hooks on the parameters, and buckets under way."""

    def __init__(
        self, model: nn.Module, comm: Comm, reducer: Reducer | None, bucket_bytes: int, trace: Trace | None
    ) -> None:
        in_backward_order({}, bucket_bytes)  # refused before anything is sent
        super().__init__(model, comm, reducer, trace)
        self.bucket_bytes = bucket_bytes
        self._carrier: Carrier = Summed(comm) if reducer is None else Beside(comm, reducer)
        self._hooks: dict[str, RemovableHandle] = {}
        self._sparse: set[str] = set()  # known to be: they stand outside
        self._buckets: list[Bucket] = []
        self._home: dict[str, Bucket] = {}
        self._under_way: list[Callable[[], Landed]] = []
        self._plan([name for name, p in self.parameters.items() if p.requires_grad])

    def means(self, samples: float | None) -> None:
        """Make every `.grad` the mean of all ranks'."""
        landed = self._landed()  # [3]
        self._note(landed)
        late = [name for name, p in self.parameters.items() if p.grad is not None]
        used = {name for bucket in self._buckets for name in bucket.used}
        roll = call_roll(self.comm, self.parameters, samples, used, late)
        self._mean_of_late(roll)
        for bucket, (means, *_) in zip(self._buckets, landed):
            bucket.land(means, roll)
        self._sparse |= set(roll.sparse)
        self._plan([name for name in roll.trains if name not in self._sparse])

    def forget(self) -> None:
        """Drop what came since the last sync, once what is under way has landed; a reducer with memory has seen it."""
        self._landed()
        for bucket in self._buckets:
            bucket.empty()
        super().forget()

    def close(self) -> None:
        """Take all hooks off and give the buckets' memory back; the gradients stay."""
        super().close()
        for hook in self._hooks.values():
            hook.remove()
        self._carrier.close()
        for bucket in self._buckets:
            if not bucket.left:  # else it is still summed, after a backward without a sync
                bucket.free()

    def _plan(self, names: Sequence[str]) -> None:
        """Cut buckets of these, unless that is how they are cut."""
        if [*names] == self._planned():
            return
        for bucket in self._buckets:
            bucket.free()
        chosen = {name: self.parameters[name] for name in names}
        self._buckets = [self._bucket(cut) for cut in in_backward_order(chosen, self.bucket_bytes)]
        self._home = {name: bucket for bucket in self._buckets for name in bucket.parameters}
        for name, p in chosen.items():
            if name not in self._hooks:
                self._hooks[name] = p.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]  # torch's
                    partial(self._arrived, name)
                )

    def _planned(self) -> list[str]:
        held = {name for bucket in self._buckets for name in bucket.parameters}
        return [name for name in self.parameters if name in held]

    def _bucket(self, names: Iterable[str]) -> Bucket:
        held = {name: self.parameters[name] for name in names}
        return Bucket(self.comm, held, self._carrier.share(next(iter(held.values())).dtype))

    def _arrived(self, name: str, _: object) -> None:
        """A gradient is ready [1]; a second time, where checkpoints or backwards nest."""
        if self.alone or name not in self._home or self._home[name].left:
            return
        self._home[name].take(name)
        while len(self._under_way) < len(self._buckets) and self._buckets[len(self._under_way)].full:
            self._begin()  # [2]
            if self.record:
                self.record.computed("backward")

    def _begin(self) -> None:
        bucket = self._buckets[len(self._under_way)]
        bucket.leave()
        self._under_way.append(self._carrier.begin(bucket))

    def _landed(self) -> list[Landed]:
        while len(self._under_way) < len(self._buckets):
            self._begin()
        landed = [wait() for wait in self._under_way]
        self._under_way.clear()
        return landed

    def _mean_of_late(self, roll: Roll) -> None:
        """What came when its bucket had left, or has none: a second mean, of these alone."""
        self.mean_of_sparse(roll)
        late = {name: self.parameters[name] for name in roll.late if name not in roll.sparse}
        for names in in_backward_order(late, self.bucket_bytes):
            self.reduce(names, roll.scale)

    def _note(self, landed: Sequence[Landed]) -> None:
        for bucket, (_, start_s, end_s, nbytes) in zip(self._buckets, landed):
            if self.record:
                self.record.travelled(list(bucket.parameters), start_s, end_s, nbytes)


def law_seconds(forward_s: float, backward_s: Sequence[float], wire_s: Sequence[float]) -> float:
    """How long a step takes. backward_s, wire_s: of each bucket, in the order of the backward."""
    ends = [sum(backward_s[: k + 1]) + sum(wire_s[k:]) for k in range(len(backward_s))]
    return forward_s + max(ends, default=0.0)
