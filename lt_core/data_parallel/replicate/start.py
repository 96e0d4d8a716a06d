"""Everyone starts from rank 0's weights: ranks whose models differ would average gradients of different functions.

Tensors travel as bytes, many in one message, so that a bool beside a double is no matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from weakref import WeakValueDictionary

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from lt_core.base.errors import UserError
from lt_core.collectives.agreement import agree
from lt_core.comm.comm import Comm

MESSAGE_BYTES = 25 * 2**20
TAKEN: WeakValueDictionary[int, object] = WeakValueDictionary()  # by a parameter's id: whose hooks take its gradients


def start_alike(comm: Comm, model: nn.Module) -> dict[str, nn.Parameter]:
    """The parameters by name, each once however often it is tied, after they and all buffers became rank 0's.

    Errors: `Mismatch` where ranks have different parameters; parameters without a shape yet, on another device, or
    whose gradients another replica takes.
    """
    if not isinstance(model, nn.Module):
        raise UserError("only a module can be replicated", type(model).__name__, "a torch.nn.Module")
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    for name, x in (parameters | buffers).items():
        _check_place(comm, name, x)
        if id(x) in TAKEN:
            what = f"{name} belongs to an overlapped replica, which would take its gradients from this one"
            raise UserError(
                what, expected="one replica at a time", attempt="close() the other one first, or a new model"
            )
    lines = [_line(name, x) for name, x in (parameters | buffers).items()]
    agree(comm, "parameters", lines, "build the model in the same way on every rank")
    broadcast(comm, [*parameters.values(), *buffers.values()])
    return parameters


def broadcast(comm: Comm, tensors: Sequence[Tensor], root: int = 0) -> None:
    """Each tensor (any shape, any dtype) becomes rank `root`'s, in place, in messages of about 25 MiB."""
    for group in _groups(tensors):
        sent = torch.cat([_bytes(x) for x in group])
        comm.broadcast(sent, root)
        if comm.rank != root:
            for x, part in zip(group, sent.split_with_sizes([x.nbytes for x in group])):
                _fill(x, part)


def _check_place(comm: Comm, name: str, x: Tensor) -> None:
    if is_lazy(x):
        raise UserError(f"{name} has no shape yet", attempt="run one forward before you replicate the model")
    if x.device != comm.device:
        attempt = f"model.to({str(comm.device)!r})"
        raise UserError(f"{name} is not where the communicator works", x.device, comm.device, attempt)


def _line(name: str, x: Tensor) -> str:
    trains = "" if x.requires_grad or not isinstance(x, nn.Parameter) else ", frozen"
    return f"{name} {tuple(x.shape)} {x.dtype}{trains}"


def _groups(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    groups: list[list[Tensor]] = []
    room = 0
    for x in (x for x in tensors if x.numel()):
        if x.nbytes > room:
            groups.append([])
            room = max(MESSAGE_BYTES, x.nbytes)
        groups[-1].append(x)
        room -= x.nbytes
    return groups


def _bytes(x: Tensor) -> Tensor:
    return x.detach().contiguous().view(-1).view(torch.uint8)


def _fill(x: Tensor, received: Tensor) -> None:
    """Write bytes into a tensor, whose storage may be strided, or hold an element for many (`expand`)."""
    dense = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    dense.view(-1).view(torch.uint8).copy_(received)
    once = tuple(slice(1 if step == 0 else None) for step in x.stride())
    with torch.no_grad():
        x[once].copy_(dense[once])
