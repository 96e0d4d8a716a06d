"""What every way of replicating a model shares: a start alike, windows without messages, and the end of a step.

    start     rank 0's parameters and buffers for everyone
    sync      the roll, then the means (each way has its own), then rank 0's buffers for everyone
    no_sync   a window in which gradients add up on the rank, as they do without it

The divisor. `sync()` takes the mean over ranks, right where each rank's loss is the mean of an equal share.
`sync(samples=n)` takes the mean over samples, right for any shares, where each rank's loss is the *sum* over its n
samples (since the last sync): all gradients are added up and divided by the samples of all ranks. A reducer gets them
divided, for what waits in it is of this step, and so is the divisor (but for `overlapped`, whose buckets leave before
it is known: their means are divided); the sum of the exact mean is divided once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter
from typing import NoReturn

import torch
from torch import Tensor, nn

from lt_core.base.errors import UserError
from lt_core.base.trace import Trace
from lt_core.collectives.reducer import Mean, Reducer, chosen, undo
from lt_core.comm.comm import Comm
from lt_core.data_parallel.replicate.record import Record
from lt_core.data_parallel.replicate.roll import Roll, how_many
from lt_core.data_parallel.replicate.sparse import mean as sparse_mean
from lt_core.data_parallel.replicate.start import broadcast, start_alike


class Replica:
    """This rank's copy of a model that all ranks train together; each way says in `means` how gradients meet."""

    def __init__(
        self, model: nn.Module, comm: Comm, reducer: Reducer | None = None, trace: Trace | None = None
    ) -> None:
        self.model, self.comm = model, comm
        self.reducer = chosen(reducer)
        self.parameters = start_alike(comm, model)
        self._known = set(map(id, self.parameters.values()))
        self.record = Record(trace, comm.rank, model) if trace is not None else None
        self.alone = False
        self._reduced: set[str] = set()  # whose mean the reducer has made in a sync that is not over

    def sync(self, samples: float | None = None) -> None:
        """After the backward: every `.grad` becomes the mean of all ranks'; None where no rank used the parameter.

        samples: of how many samples (tokens, where it adds up tokens) this rank's loss was the sum; None where it was a
        mean over an equal share. A rank that has nothing left to learn from takes part with `sync(samples=0)`, without
        a backward; `uneven.together` says how long.
        Errors: within `no_sync`; samples that are no number, or given on some ranks only; a parameter that is frozen on
        some ranks only, or that came after the model was replicated: after these `sync` may be called again. Those of
        the reducer and of the communicator: after these the step is dropped, as `forget` does it, and what a reducer
        had sent of its memory comes back to it, if it can undo a step.
        """
        if self.alone:
            raise UserError("sync within no_sync", attempt="leave the window before the last backward of the step")
        self._check_known()
        samples = how_many(samples)  # refused before anything is sent
        if self.record:
            self.record.computed("backward")
        with torch.no_grad():
            self.means(samples)
            broadcast(self.comm, list(self.model.buffers()))  # after the backward, which may still have needed them
        if self.record:
            self.record.over()

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """A window in which no message is sent and gradients add up: for all micro-batches of a step but the last."""
        before, self.alone = self.alone, True
        try:
            yield
        finally:
            self.alone = before

    def forget(self) -> None:
        """Instead of `sync`, on every rank: drop all gradients, where a backward failed or its step is skipped."""
        for parameter in self.parameters.values():
            parameter.grad = None
        if self.record:
            self.record.over()

    def means(self, samples: float | None) -> None:
        """Make every `.grad` the mean of all ranks'."""
        raise NotImplementedError

    def means_of(self, roll: Roll, buckets: Iterable[list[str]]) -> None:
        """The means of what is sparse, then of each bucket."""
        self.mean_of_sparse(roll)
        for names in buckets:
            self.reduce(names, roll.scale)

    @contextmanager
    def or_dropped(self) -> Iterator[None]:
        """Where this fails the step is dropped: some means stood beside gradients, and would be summed once more."""
        try:
            yield
        except Exception:
            self.drop()
            raise
        self._reduced.clear()

    def drop(self) -> None:
        """Nothing has come; and a reducer has not seen it, if it can undo a step."""
        undo(self.reducer, self._reduced)
        self._reduced.clear()
        Replica.forget(self)

    def reduce(self, names: list[str], scale: float) -> None:
        """The mean of one bucket, through the reducer, into `.grad`."""
        before, after = (1.0, scale) if isinstance(self.reducer, Mean) else (scale, 1.0)
        grads = {name: _times(self.grad(name), before) for name in names}
        start_s, sent_before = perf_counter(), self.comm.traffic.bytes
        means = self.reducer.reduce(grads, self.comm).mean
        self._reduced.update(names)
        if self.record:
            self.record.travelled(names, start_s, perf_counter(), self.comm.traffic.bytes - sent_before)
        for name in names:
            self.parameters[name].grad = _times(means[name], after)

    def grad(self, name: str) -> Tensor:
        """This rank's gradient, dense; zeros where it had none."""
        parameter = self.parameters[name]
        if parameter.grad is None:
            return torch.zeros(parameter.shape, dtype=parameter.dtype, device=parameter.device)
        return parameter.grad.to_dense() if parameter.grad.is_sparse else parameter.grad

    def mean_of_sparse(self, roll: Roll) -> None:
        """The means of the sparse gradients: their rows travel, whatever the reducer is."""
        for name in roll.sparse:
            self.parameters[name].grad = sparse_mean(self.comm, name, self.parameters[name]) * roll.scale

    def _check_known(self) -> None:
        """Refuse gradients that nobody would average: ranks would train on apart."""
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None and id(parameter) not in self._known:
                what = f"{name} came after the model was replicated"
                raise UserError(what, attempt="close this replica, and replicate the model again")

    def state_dict(self) -> dict[str, object]:
        """What the reducer must remember between steps; the model's and the optimizer's are yours."""
        return self.reducer.state_dict()

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Go on from what `state_dict` gave. Errors: those of the reducer."""
        self.reducer.load_state_dict(state)

    def __getstate__(self) -> NoReturn:
        """Errors: always, for a copy would have neither hooks nor a communicator of its own."""
        what = "a replica can be neither copied nor pickled"
        raise UserError(what, attempt="copy.deepcopy(replica.model), and replica.state_dict()")

    def close(self) -> None:
        """Take all hooks off the model."""
        if self.record:
            self.record.close()


def _times(x: Tensor, scale: float) -> Tensor:
    return x * scale if scale != 1 else x
