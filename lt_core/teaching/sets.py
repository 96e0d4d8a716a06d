"""What can be compared: tensors, dicts of tensors, modules, one for all or a list by rank; and how much there is."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor, nn

from lt_core.base.errors import UserError

Tensors = Tensor | Mapping[str, Tensor] | nn.Module


def pairs_of(ours: object, plain: object) -> list[tuple[str, dict[str, Tensor], dict[str, Tensor]]]:
    """Who, and what is compared with what."""
    if plain is None and not isinstance(ours, list | tuple):
        raise UserError("nothing to compare it with", expected="plain, or a list of what each rank holds")
    mine = list(ours) if isinstance(ours, list | tuple) else [ours]
    theirs = (
        list(plain) if isinstance(plain, list | tuple) else [mine[0] if plain is None and mine else plain] * len(mine)
    )
    if len(mine) != len(theirs) or len(mine) < (2 if plain is None else 1):
        raise UserError(
            "nothing to compare", f"{len(mine)} against {len(theirs)} ranks", "as many of the one as of the other"
        )
    by_rank = isinstance(ours, list | tuple)
    sets = [
        (f"rank {r}: " if by_rank else "", named(a), named(b))
        for r, (a, b) in enumerate(zip(mine, theirs, strict=True))
    ]
    if not any(a or b for _, a, b in sets):
        raise UserError("nothing to compare", "no tensor on either side")
    return sets


def named(x: object) -> dict[str, Tensor]:
    """Tensors by name: a module's parameters and buffers. Errors: what holds no tensors."""
    if isinstance(x, Tensor):
        return {"the tensor": x}
    found = {**dict(x.named_parameters()), **dict(x.named_buffers())} if isinstance(x, nn.Module) else x
    if isinstance(found, Mapping) and all(isinstance(v, Tensor) and v.device.type != "meta" for v in found.values()):
        return {str(k): v for k, v in found.items()}
    raise UserError(
        "no tensors to compare", f"{type(x).__name__} {x!r:.40}", "a tensor, a dict of tensors, or a module"
    )


def evidence_of(ours: object, after: str, ranks: int) -> str:
    first = ours[0] if isinstance(ours, list | tuple) else ours
    if isinstance(first, nn.Module):
        counted = f"{sum(p.numel() for p in first.parameters()):,} parameters"
        buffers = sum(b.numel() for b in first.buffers())
        counted += f" and {buffers:,} numbers in buffers" if buffers else ""
    else:
        tensors = named(first)
        counted = f"{sum(t.numel() for t in tensors.values()):,} numbers"
        counted += f" in {len(tensors)} tensors" if len(tensors) > 1 else ""
    text = f"{counted}{f' after {after}' if after else ''}"
    return f"{text}, {ranks} ranks" if isinstance(ours, list | tuple) else text
