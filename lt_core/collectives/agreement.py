"""Whether all ranks brought the same thing, asked once, before sums of different things are taken for a mean.

Each rank describes in lines what it brings. A digest and a length, 16 bytes, are gathered; only where they differ the
lines themselves follow, so that every rank raises the same error, which names the first line that differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import torch
from torch import Tensor

from lt_core.base.errors import Mismatch
from lt_core.comm.comm import Comm


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
