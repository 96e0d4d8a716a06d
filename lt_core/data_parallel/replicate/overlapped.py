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

from collections.abc import Iterable, Sequence
from functools import partial

from torch import nn
from torch.utils.hooks import RemovableHandle

from lt_core.base.errors import UserError
from lt_core.base.trace import Trace
from lt_core.collectives.agreement import fractions
from lt_core.collectives.reducer import Reducer, memories
from lt_core.comm.comm import Comm
from lt_core.data_parallel.replicate.bucketed import law_bytes, law_messages
from lt_core.data_parallel.replicate.buckets import BUCKET_BYTES, in_backward_order
from lt_core.data_parallel.replicate.carriers import Beside, Carrier, Summed
from lt_core.data_parallel.replicate.flat import Bucket
from lt_core.data_parallel.replicate.replica import Replica
from lt_core.data_parallel.replicate.roll import Roll, call_roll
from lt_core.data_parallel.replicate.start import TAKEN
from lt_core.data_parallel.replicate.under_way import UnderWay

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
    does, and who clips them before finds a norm of 0. After it each `.grad` lies in its bucket, where the next backward
    writes: clone what you keep. Without a reducer buckets are summed by the communicator's own all-reduce, in place. A
    reducer works on a thread beside the backward; until `sync()` nobody else may use its communicator. Else arguments
    and errors are those of `bucketed.replicate`, and samples are refused where the reducer remembers gradients: these
    have left, and a part of them waits, before it is known by what they are to be divided. So is a second backward of a
    step whose first has left, where the reducer has momentum: it would take the two for two steps.
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
        self._memories = memories(self.reducer)
        self._under_way = UnderWay(self._carrier)
        self._hooks: dict[str, RemovableHandle] = {}
        self._sparse: set[str] = set()  # known to be: they stand outside
        self._home: dict[str, Bucket] = {}
        self._plan([name for name, p in self.parameters.items() if p.requires_grad])
        TAKEN.update({id(p): self for p in self.parameters.values()})

    def means(self, samples: float | None) -> None:
        """Make every `.grad` the mean of all ranks'. Where the roll fails, what has landed stays for the next sync."""
        with self.or_dropped():
            self._under_way.land()  # [3]
        late = [name for name, p in self.parameters.items() if p.grad is not None]
        used = {name for bucket in self._under_way.buckets for name in bucket.used}
        roll = call_roll(self.comm, self.parameters, samples, used, late)
        self._check_memory(roll, samples)  # after the roll, so that all ranks hear it
        with self.or_dropped():
            self._show(roll)
        self._sparse |= set(roll.sparse)
        self._plan([name for name in roll.trains if name not in self._sparse])

    def forget(self) -> None:
        """Drop what came since the last sync, once what is under way has landed.

        What a reducer has sent of its memory comes back to it, if it can undo a step. Errors: what it raised.
        """
        with self.or_dropped():
            self._under_way.land()
        self.drop()

    def close(self) -> None:
        """Take all hooks off and give the buckets' memory back; the gradients stay."""
        super().close()
        for hook in self._hooks.values():
            hook.remove()
        for p in self.parameters.values():
            if TAKEN.get(id(p)) is self:
                del TAKEN[id(p)]
        self._carrier.close()
        self._under_way.free()

    def _plan(self, names: Sequence[str]) -> None:
        """Cut buckets of these, unless that is how they are cut."""
        if [*names] == [name for name in self.parameters if name in self._home]:
            return
        self._under_way.free()
        chosen = {name: self.parameters[name] for name in names}
        fractions(chosen)
        buckets = [self._bucket(cut) for cut in in_backward_order(chosen, self.bucket_bytes)]
        self._under_way.buckets = buckets
        self._home = {name: bucket for bucket in buckets for name in bucket.parameters}
        for name, p in chosen.items():
            if name not in self._hooks:
                self._hooks[name] = p.register_post_accumulate_grad_hook(  # type: ignore[no-untyped-call]  # torch's
                    partial(self._arrived, name)
                )

    def _bucket(self, names: Iterable[str]) -> Bucket:
        return Bucket(self.comm, {name: self.parameters[name] for name in names})

    def _arrived(self, name: str, _: object) -> None:
        """A gradient is ready [1]; a second time, where checkpoints or backwards nest."""
        if self.alone or name not in self._home or self._home[name].left:
            return
        self._home[name].take(name)
        while self._under_way.ready:
            self._under_way.begin()  # [2]
            if self.record:
                self.record.computed("backward")

    def _check_memory(self, roll: Roll, samples: float | None) -> None:
        """Refuse what a reducer that remembers would take for something else."""
        if samples is not None and self._memories:
            raise _no_samples(self.reducer)
        again = [name for name in roll.late if name in self._under_way.reduced()]
        if again and "waiting" in self._memories:
            raise UserError(
                f"a second gradient of {again[0]} came when the first had left",
                f"{type(self.reducer).__name__}, whose momentum would take them for two steps",
                "one backward a step beside which buckets leave",
                "no_sync() for all backwards but the last, or bucketed.replicate",
            )

    def _show(self, roll: Roll) -> None:
        """`.grad` becomes what has landed."""
        for bucket, (_, start_s, end_s, nbytes) in self._under_way.landed():
            if self.record:
                self.record.travelled(list(bucket.parameters), start_s, end_s, nbytes)
        late = {name: self.parameters[name] for name in roll.late if name not in roll.sparse}
        self.means_of(roll, in_backward_order(late, self.bucket_bytes))  # of what had missed its bucket, or has none
        for bucket, landed in self._under_way.landed():
            bucket.show(landed.means, roll)
        self._under_way.clear()

    def drop(self) -> None:
        """Nothing has come; and a reducer has not seen it, if it can undo a step."""
        self._reduced |= self._under_way.reduced()
        self._under_way.clear()
        super().drop()


def _no_samples(reducer: Reducer) -> UserError:
    return UserError(
        "what waits of a step is divided by the samples of that step, which are told when its buckets have left",
        f"samples, and {type(reducer).__name__}, which remembers gradients",
        "sync() after losses that are means over equal shares, or a reducer without such a memory",
        "bucketed.replicate",
    )


def law_seconds(forward_s: float, backward_s: Sequence[float], wire_s: Sequence[float]) -> float:
    """How long a step takes. backward_s, wire_s: of each bucket, in the order of the backward."""
    ends = [sum(backward_s[: k + 1]) + sum(wire_s[k:]) for k in range(len(backward_s))]
    return forward_s + max(ends, default=0.0)
