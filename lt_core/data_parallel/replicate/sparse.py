"""The mean of gradients of which most rows are zero, such as an embedding's: only the rows that were used travel.

    rank 0   rows 3 7      everyone gets all rows of all ranks, and adds up those that came twice:
    rank 1   rows 7        3 7 7 -> 3 7, divided by the ranks; the gradient stays sparse, as its optimizer wants it

All ranks send as many rows as the one that has most, for a gather has equal parts.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lt_core.base.errors import UserError
from lt_core.comm.comm import Comm


def mean(comm: Comm, name: str, parameter: nn.Parameter) -> Tensor:
    """The mean of all ranks' `parameter.grad`, sparse as they are; None counts as zero.

    Errors: ranks whose gradients are sparse in different dimensions.
    """
    grad = parameter.grad.coalesce() if parameter.grad is not None else None
    mine = [grad.indices().shape[1], grad.sparse_dim()] if grad is not None else [0, 0]
    heads = _gathered(comm, torch.tensor(mine, device=comm.device))
    rows, dims = heads.t().tolist()
    dim = max(dims)
    if {0, dim} < {0, *dims}:
        raise UserError(f"the gradients of {name} are sparse in different dimensions", dims, "one number")
    indices = torch.zeros((max(rows), dim), dtype=torch.int64, device=comm.device)
    values = torch.zeros((max(rows), *parameter.shape[dim:]), dtype=parameter.dtype, device=comm.device)
    if grad is not None:
        indices[: rows[comm.rank]], values[: rows[comm.rank]] = grad.indices().t(), grad.values()
    there = torch.cat([torch.arange(max(rows)) < n for n in rows]).to(comm.device)
    all_indices, all_values = (_gathered(comm, x).flatten(0, 1)[there] for x in (indices, values))
    total = torch.sparse_coo_tensor(all_indices.t(), all_values, parameter.shape, check_invariants=False)
    return total.coalesce() / comm.size


def _gathered(comm: Comm, x: Tensor) -> Tensor:
    """Everyone's x (any shape, alike on all ranks), by rank: (size, ...)."""
    out = x.new_empty(comm.size * x.numel())
    comm.all_gather(out, x.contiguous().view(-1))
    return out.view(comm.size, *x.shape)
