"""A collective call in words: equal on all ranks exactly if the ranks may meet in it.

all_reduce of (4,) float32          broadcast of (2, 3) int64 from rank 1
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from lt_core.base.errors import UserError

# What can be started.
VERBS = ("exchange", "barrier", "all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all")


def startable(verb: object) -> None:
    """Errors: `UserError` where `start` was not given the name of a verb, such as by `start(x)`."""
    if verb not in VERBS:
        how = """its name first, then what it takes: start("all_reduce", x)"""
        raise UserError(f"{verb!r:.40} cannot be started", expected=", ".join(VERBS), attempt=how)


def text(verb: str, *args: object) -> str:
    """The call in words; what may differ between ranks (the rows of an all_to_all) is left out."""
    match verb, args:
        case ("all_reduce", (Tensor() as x, mean)) if mean:
            return f"all_reduce to the mean of {_shown(x)}"
        case ("all_reduce" | "allocate", (Tensor() as x, *_)):
            return f"{verb} of {_shown(x)}"
        case ("reduce_scatter" | "all_gather", (_, Tensor() as x)):
            return f"{verb} of {_shown(x)}"
        case ("broadcast", (Tensor() as x, root)):
            return f"broadcast of {_shown(x)} from rank {root}"
        case ("all_to_all", (_, Tensor() as x, *_)):
            return f"all_to_all of rows {tuple(x.shape[1:])} {_name(x)}"
        case ("subset", (Sequence() as ranks,)):
            return f"subset {list(ranks)}"
    return verb


def exchange(sends: Sequence[int], receives: Sequence[int]) -> str:
    """An exchange in words, by its peers."""
    ends = [f"to {r}" for r in sends] + [f"from {r}" for r in receives]
    return f"exchange ({', '.join(ends)})"


def _shown(x: Tensor) -> str:
    return f"{tuple(x.shape)} {_name(x)}"


def _name(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")
