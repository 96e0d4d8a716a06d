"""Whether all ranks brought the same thing, asked once, before sums of different things are taken for a mean.

Each rank describes in lines what it brings. A digest and a length, 16 bytes, are gathered; only where they differ the
lines themselves follow, so that every rank raises the same error, which names the first line that differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256

import torch
from torch import Tensor

from lt_core.base.errors import Mismatch, UserError
from lt_core.comm.checks import plain
from lt_core.comm.comm import Comm


class Agreed:
    """What a reducer asks of each bucket: `Agreed("top-k of 0.01")(grads, comm)` returns where all ranks brought it.

    settings: what the ranks must have in common besides. A bucket that was seen before costs no message. One that
    changes on some ranks alone is asked about by these, while the others sum: that ends in a `Mismatch` where the calls
    are compared (threads, the contract), and in a `Deadline` at the latest. Errors: names,
    shapes, dtypes or settings that differ between ranks, no ordinary tensor, a dtype that has no mean.
    """

    def __init__(self, settings: str = "") -> None:
        self._settings = [settings] if settings else []
        self._known: list[tuple[Comm, list[tuple[str, torch.Size, torch.dtype]]]] = []

    def __getstate__(self) -> dict[str, object]:
        """A copy has seen no bucket: communicators stay where they are."""
        return {"_settings": self._settings, "_known": []}

    def __call__(self, grads: Mapping[str, Tensor], comm: Comm) -> None:
        """Hold the ranks of `comm` to one bucket."""
        ordinary(grads, comm)
        bucket = [(name, x.shape, x.dtype) for name, x in grads.items()]
        if any(bucket == known and comm is there for there, known in self._known):
            return
        lines = [f"{name} {tuple(shape)} {dtype}" for name, shape, dtype in bucket]
        agree(comm, "gradients", [*self._settings, *lines], "go through model.named_parameters() on every rank")
        fractions(grads)
        self._known.append((comm, bucket))


def ordinary(grads: Mapping[str, Tensor], comm: Comm) -> None:
    """Refuse what is no bucket: tensors by name, whose elements all stand in storage where the communicator works."""
    if not isinstance(grads, Mapping):
        raise UserError("a bucket is gradients by name", type(grads).__name__, "a dict {name: gradient}")
    for name, x in grads.items():
        plain(f"the mean of {name}", x)
        if x.device != comm.device:
            attempt = f"x.to({str(comm.device)!r})"
            raise UserError(f"the mean of {name}: the tensor is elsewhere", x.device, comm.device, attempt)


def fractions(grads: Mapping[str, Tensor]) -> None:
    """Refuse dtypes that have no mean."""
    for name, x in grads.items():
        if not x.dtype.is_floating_point or x.dtype.itemsize < 2:
            line, attempt = f"{name} {tuple(x.shape)} {x.dtype}", "machine.all_reduce gives the sum"
            raise UserError("a mean needs fractions", line, "a floating dtype of at least 16 bits", attempt)


def agree(comm: Comm, what: str, lines: Sequence[str], attempt: str = "") -> None:
    """Return where every rank brought these lines. Errors: `Mismatch`, on every rank, in the same words."""
    text = "\n".join(lines).encode()
    digest = int.from_bytes(sha256(text).digest()[:8], "big", signed=True)
    seen = _gathered(comm, torch.tensor([digest, len(text)]))
    others = [r for r in range(comm.size) if not torch.equal(seen[r], seen[0])]
    if not others:
        return
    padded = text.ljust(int(seen[:, 1].max()), b"\n")
    texts = _gathered(comm, torch.tensor(list(padded), dtype=torch.uint8))
    here, there = (bytes(texts[r].tolist()).decode().rstrip("\n").split("\n") for r in (0, others[0]))
    place = next((k for k, (a, b) in enumerate(zip(here, there)) if a != b), min(len(here), len(there)))
    shown = [
        f"rank {r} has {' '.join(part[place : place + 1]) or 'nothing'}" for r, part in ((0, here), (others[0], there))
    ]
    raise Mismatch(
        f"the ranks brought different {what}",
        f"as number {place}: {', '.join(shown)}",
        "the same on every rank",
        attempt,
    )


def _gathered(comm: Comm, row: Tensor) -> Tensor:
    """Everyone's row (n,), by rank: (size, n)."""
    out = row.new_empty((comm.size * row.numel(),), device=comm.device)
    comm.all_gather(out, row.to(comm.device))
    return out.view(comm.size, -1).cpu()
