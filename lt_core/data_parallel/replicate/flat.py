"""A bucket in one piece of memory: the gradients of its parameters are views of it, so that one message carries them.

flat    [ head.weight | head.bias | block.1.weight ]      allocated once, where the communicator works in place
.grad     ^             ^           ^                     after a sync; until then a backward makes its own, which
                                                          is copied in when it is ready
"""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from lt_core.base.errors import UserError
from lt_core.comm import streamed
from lt_core.comm.buffers import allocate, free
from lt_core.comm.comm import Comm
from lt_core.data_parallel.replicate.roll import Roll


class Bucket:
    """Some parameters of one dtype, whose gradients lie in `flat`."""

    def __init__(self, comm: Comm, parameters: Mapping[str, nn.Parameter]) -> None:
        self._comm, self.parameters = comm, parameters
        sizes = [p.numel() for p in parameters.values()]
        self.flat = allocate(comm, sum(sizes), next(iter(parameters.values())).dtype)
        self._copy = streamed.copier(self.flat.nbytes)
        pieces = self.flat.split_with_sizes(sizes)
        self.views = {name: x.view(p.shape) for (name, p), x in zip(parameters.items(), pieces)}
        self._arrived: set[str] = set()  # whose backward is over
        self.used: set[str] = set()  # whose gradient lies in `flat`
        self.left = False

    @property
    def full(self) -> bool:
        """Whether nothing is missing."""
        return len(self._arrived) == len(self.parameters)

    def take(self, name: str) -> None:
        """Move a gradient in, on top of what it moved before; a sparse one stays where it is. `.grad` is empty then."""
        parameter, view = self.parameters[name], self.views[name]
        grad = parameter.grad
        if name not in self._arrived and (grad is None or grad.is_sparse):
            view.zero_()
        self._arrived.add(name)
        if grad is None or grad.is_sparse:
            return
        self._check(name, grad, view)
        if grad.data_ptr() == view.data_ptr():
            pass  # it was set to zero, not to None
        elif name in self.used:  # ready twice: checkpoints or backwards nest
            view.add_(grad.detach())
        else:
            self._copy(view, grad.detach())
        self.used.add(name)
        parameter.grad = None  # its memory is the next gradient's

    def _check(self, name: str, grad: Tensor, view: Tensor) -> None:
        """Refuse what does not fit: `model.half()` and `model.to(...)` change parameters where they are."""
        if (grad.shape, grad.dtype, grad.device) != (view.shape, view.dtype, view.device):
            now, then = (f"{tuple(x.shape)} {x.dtype} on {x.device}" for x in (grad, view))
            what = f"the gradient of {name} has changed since the model was replicated"
            raise UserError(what, now, then, "replicate the model after it was converted")

    def leave(self) -> None:
        """Take in what is missing. What comes from now on has missed the bucket."""
        for name in self.parameters:
            if name not in self._arrived or self.parameters[name].grad is not None:
                self.take(name)
        self.left = True

    def show(self, means: Mapping[str, Tensor], roll: Roll) -> None:
        """`.grad` shows the means of those that were used."""
        for name in [name for name in roll.dense if name in self.parameters and name in means]:
            late, mean = self.parameters[name].grad, means[name]
            if roll.scale != 1:
                mean = mean.mul_(roll.scale)
            self.parameters[name].grad = mean if late is None else mean.add_(late)

    def empty(self) -> None:
        """Nothing has come yet."""
        self._arrived, self.used, self.left = set(), set(), False

    def free(self) -> None:
        """Give the memory back; gradients that are views of it stay."""
        free(self._comm, self.flat)
