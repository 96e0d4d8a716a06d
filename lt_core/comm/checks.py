"""What every communicator asks of its inputs, before anything moves: the tensors, the ranks, the shapes.

The tensors must suit gloo and NCCL alike, so that what runs on one runs on the other: dense (gloo's broadcast of a
strided tensor gives wrong numbers without an error), on the communicator's device, of a dtype that both know.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lt_core.base.errors import Misuse, UserError

if TYPE_CHECKING:
    from lt_core.comm.comm import Comm, Ends

SUMMED = (
    torch.float32,
    torch.bfloat16,
    torch.float16,
    torch.float64,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.int8,
)
MOVED = (*SUMMED, torch.bool)


def tensor(comm: Comm, verb: str, x: Tensor, dtypes: Sequence[torch.dtype] = MOVED) -> None:
    """Refuse what is no dense tensor on the communicator's device, or none of `dtypes` (which gloo and NCCL both know).

    Without `dtypes` any will do: messages cross as bytes.
    """
    if not isinstance(x, Tensor):
        raise UserError(f"{verb} takes tensors", type(x).__name__, "a torch.Tensor")
    if not x.is_contiguous() or x.layout is not torch.strided:
        raise Misuse(
            f"{verb}: the tensor is strided",
            f"shape {tuple(x.shape)}, strides {x.stride() if x.layout is torch.strided else x.layout}",
            "a dense one: backends read its storage from front to back",
            "x.contiguous(), and copy the result back",
        )
    if x.device != comm.device:
        raise UserError(f"{verb}: the tensor is elsewhere", x.device, comm.device, f"x.to({str(comm.device)!r})")
    if dtypes and x.dtype not in dtypes:
        known = ", ".join(str(d).removeprefix("torch.") for d in dtypes)
        raise UserError(f"{verb}: not every backend knows this dtype", x.dtype, known, "x.view(torch.uint8) to move it")


def plain(verb: str, x: object) -> None:
    """Refuse what is no tensor whose elements all stand in its storage: lists, sparse and quantized tensors."""
    if not isinstance(x, Tensor):
        raise UserError(f"{verb} takes tensors", type(x).__name__, "a torch.Tensor")
    if x.is_nested or x.is_quantized or x.layout is not torch.strided:
        kind = "nested" if x.is_nested else "quantized" if x.is_quantized else str(x.layout)
        raise UserError(f"{verb} takes ordinary tensors", kind, "torch.strided", "x.to_dense(), or x.dequantize()")


def overlap(a: Tensor, b: Tensor) -> bool:
    """Whether two dense tensors share a byte."""
    first, second = a.data_ptr(), b.data_ptr()
    return first < second + b.nbytes and second < first + a.nbytes


def peer(comm: Comm, verb: str, rank: int) -> None:
    """Refuse a peer that is not in the group, or is the rank itself."""
    if not 0 <= rank < comm.size:
        raise UserError(f"{verb}: there is no rank {rank}", rank, f"0 to {comm.size - 1}")
    if rank == comm.rank:
        raise UserError(f"{verb}: rank {rank} would talk to itself", rank, "another rank", "copy the tensor")


def exchange(comm: Comm, sends: Ends, receives: Ends) -> None:
    """Refuse an exchange with a bad tensor or a bad peer, or one whose ends are no pairs."""
    try:
        for x, to in sends:
            tensor(comm, "exchange", x, dtypes=())
            peer(comm, "exchange", to)
        for buffer, source in receives:
            tensor(comm, "exchange", buffer, dtypes=())
            peer(comm, "exchange", source)
            if any(overlap(buffer, x) for x, _ in sends):
                raise Misuse(f"exchange: the buffer for rank {source} is sent as well", attempt="send a clone of it")
    except (TypeError, ValueError, RuntimeError):  # (tensor, rank) alone, whose parts may unpack like a pair
        _pairs("sends", sends)
        _pairs("receives", receives)
        raise


def _pairs(which: str, ends: object) -> None:
    """Refuse what is no list of (tensor, rank), such as one pair alone."""
    several = list(ends) if isinstance(ends, list | tuple) else [ends]
    if any(not isinstance(end, list | tuple) or len(end) != 2 for end in several):
        got = f"{type(ends).__name__} of {', '.join(type(end).__name__ for end in several[:3])}"
        got = got if isinstance(ends, list | tuple) else type(ends).__name__
        raise UserError(f"exchange: {which} is no list of pairs", got, "[(tensor, rank), ...]; for nothing, []")


def all_reduce(comm: Comm, x: Tensor, mean: bool = False) -> None:
    """Refuse what cannot be summed, and means of integers, which are none."""
    tensor(comm, "all_reduce", x, dtypes=SUMMED)
    if mean and not x.dtype.is_floating_point:
        what = "all_reduce: integers have no mean among them"
        raise UserError(what, x.dtype, "a floating dtype", "y = x.double(), and the mean of y")


def broadcast(comm: Comm, x: Tensor, root: int) -> None:
    """Refuse a bad tensor, or a root that is not in the group."""
    tensor(comm, "broadcast", x)
    if not 0 <= root < comm.size:
        raise UserError(
            f"broadcast: there is no rank {root}", root, f"0 to {comm.size - 1}, ranks of this communicator"
        )


def reduce_scatter(comm: Comm, out: Tensor, x: Tensor) -> None:
    """Refuse what cannot be summed, or an output that is not one part of the input."""
    tensor(comm, "reduce_scatter", x, dtypes=SUMMED)
    _pair(comm, "reduce_scatter", out, x, out.numel() * comm.size, x.numel(), "size * out elements in x")


def all_gather(comm: Comm, out: Tensor, x: Tensor) -> None:
    """Refuse a bad tensor, or an output that does not hold everyone's input."""
    tensor(comm, "all_gather", x)
    _pair(comm, "all_gather", out, x, out.numel(), x.numel() * comm.size, "size * x elements in out")


def all_to_all(
    comm: Comm, out: Tensor, x: Tensor, out_counts: Sequence[int] | None = None, counts: Sequence[int] | None = None
) -> tuple[list[int], list[int]]:
    """Rows that come from and go to each rank (out_counts, counts), all checked; without counts equal parts."""
    tensor(comm, "all_to_all", x)
    _pair(comm, "all_to_all", out, x, 0, 0, "")
    if out.shape[1:] != x.shape[1:]:
        raise UserError(
            "all_to_all: the rows differ", f"out {tuple(out.shape)}, x {tuple(x.shape)}", "equal after dim 0"
        )
    return _rows(comm, "out", out, out_counts), _rows(comm, "x", x, counts)


def world_size(size: int) -> None:
    """Refuse a world without ranks."""
    if size < 1:
        raise UserError("a world needs ranks", size, "at least 1")


def subset(comm: Comm, ranks: Sequence[int]) -> tuple[int, ...]:
    """The ranks of a new group, checked: some, in range, each once."""
    chosen = tuple(int(r) for r in ranks)
    if not chosen or len(set(chosen)) < len(chosen) or not all(0 <= r < comm.size for r in chosen):
        raise UserError(
            "these ranks make no group", list(chosen), f"distinct ranks from 0 to {comm.size - 1}, at least 1"
        )
    return chosen


def _pair(comm: Comm, verb: str, out: Tensor, x: Tensor, got: int, expected: int, rule: str) -> None:
    tensor(comm, verb, out)
    if out.dtype != x.dtype:
        raise UserError(f"{verb}: two dtypes", f"out {out.dtype}, x {x.dtype}", "one")
    if got != expected:
        raise UserError(f"{verb}: the sizes do not fit {comm.size} ranks", f"out {out.numel()}, x {x.numel()}", rule)


def _rows(comm: Comm, name: str, x: Tensor, counts: Sequence[int] | None) -> list[int]:
    rows = x.shape[0] if x.dim() else 1
    if counts is None:
        if rows % comm.size or not x.dim():
            raise UserError(f"all_to_all: {name} has no {comm.size} equal parts", tuple(x.shape), attempt="give counts")
        return [rows // comm.size] * comm.size
    chosen = [int(c) for c in counts]
    if len(chosen) != comm.size or min(chosen) < 0 or sum(chosen) != rows or not x.dim():
        raise UserError(
            f"all_to_all: the counts do not cut {name}",
            f"{chosen} of {rows} rows",
            f"{comm.size} counts, {rows} in all",
        )
    return chosen
