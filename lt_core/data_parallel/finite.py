"""What is not finite ends an asynchronous run before anybody's weights have it.

rank 1   F: g has a nan  -->  UserError, which names rank and clock         rank 0, servers   Aborted, in the same words

Where ranks meet in each step a nan is in everybody's mean, and all can skip that step. Here nobody would know whose it
was: it would lie in weights that exist once, and in every gradient from then on.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from lt_core.base.errors import UserError


def finite(gradient: Iterable[Tensor | None], rank: int, clock: int) -> None:
    """Refuse a gradient with an inf or a nan. gradient: its tensors, dense or sparse, None where there is none.

    Errors: there is one; `enact` and a launch tell all other ranks.
    """
    dense = [x._values() if x.is_sparse else x for x in gradient if x is not None]
    spoiled = next((x for x in dense if not bool(torch.isfinite(x).all())), None)
    if spoiled is not None:
        which = "nan" if bool(torch.isnan(spoiled).any()) else "inf"
        what = f"rank {rank}'s gradient of clock {clock} would spoil the weights of all"
        raise UserError(what, which, "finite numbers", "a smaller step, or a look at that batch")
