"""Images to name: scikit-learn's 1,797 handwritten digits of 8 x 8 pixels, 1,536 to learn from and 261 held out."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy
import torch
from torch import Tensor

from lt_core.base.errors import UserError

TRAIN = 1536  # every world of 2, 3, 4, 6 or 8 ranks shares it out evenly


class Images(NamedTuple):
    """x: (n, features), float32, of 0 to 1; y: (n,), int64."""

    x: Tensor
    y: Tensor


def digits(folder: str | Path | None = None, train: int = TRAIN, seed: int = 0) -> tuple[Images, Images]:
    """Images to learn from, `train` of them, and those held out, shuffled alike for one seed.

    folder: your own, with `x.npy` (n, ...), any numbers, and `y.npy` (n,), whole ones; the largest x becomes 1.
    Errors: a folder without the two, or whose sizes differ; fewer images than `train`.
    """
    x, y = _own(Path(folder)) if folder is not None else _sklearn()
    if not 0 < train <= len(x):
        raise UserError(f"{train} of {len(x)} images cannot be learned from", expected=f"1 to {len(x)}")
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))
    everything = Images((x / x.abs().max().clamp(min=1e-30))[order], y[order])
    return Images(*(part[:train] for part in everything)), Images(*(part[train:] for part in everything))


def _sklearn() -> tuple[Tensor, Tensor]:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return torch.from_numpy(x).float(), torch.from_numpy(y).long()


def _own(folder: Path) -> tuple[Tensor, Tensor]:
    try:
        x, y = (torch.from_numpy(numpy.load(folder / f"{name}.npy", allow_pickle=False)) for name in "xy")
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{folder} holds no images", error, "x.npy and y.npy, numbers as numpy.save writes") from None
    if len(x) != y.numel():
        raise UserError(f"{folder} holds {len(x)} images and {y.numel()} names", expected="as many of both")
    return x.flatten(1).float(), y.long().view(-1)
