"""A model that is computed beside the cores, as on a device: its host gives the same gradients' bytes and then sleeps.

host      |layer, one sample|.. sleeps ..|layer|.. sleeps ..|      what else runs here has the core meanwhile
device    |layer, all samples            |layer             |      a layer's share is that of its weights
"""

from collections.abc import Callable
from statistics import median
from time import perf_counter, sleep

import torch
from torch import Tensor, nn

from lt_core.comm import Comm

TRIALS = 5


class Elsewhere:
    """The device of one model. forward_s, backward_s: how long it takes for the whole of it."""

    def __init__(self, model: nn.Module, forward_s: float, backward_s: float) -> None:
        self._free_s = 0.0
        layers = [layer for layer in model.modules() if isinstance(layer, nn.Linear)]
        whole = sum(layer.weight.numel() for layer in layers)
        model.register_forward_pre_hook(self._begin)
        for layer in layers:
            share = layer.weight.numel() / whole
            layer.register_forward_hook(self._until(forward_s * share))
            layer.weight.register_hook(self._until(backward_s * share))

    def _begin(self, *_: object) -> None:
        self._free_s = perf_counter()

    def _until(self, seconds: float) -> Callable[..., None]:
        """Sleeps until the device has worked so much longer."""

        def hook(*_: object) -> None:
            self._free_s += seconds
            sleep(max(0.0, self._free_s - perf_counter()))

        return hook


def computed_s(comm: Comm, model: nn.Module, batch: tuple[Tensor, Tensor], trials: int = TRIALS) -> tuple[float, float]:
    """How long a forward and a backward take on the cores, all ranks at once: medians, their mean over ranks."""
    spans: list[tuple[float, float]] = []
    for _ in range(trials):
        comm.barrier()
        start_s = perf_counter()
        loss = nn.functional.cross_entropy(model(batch[0]), batch[1])
        between_s = perf_counter()
        loss.backward()
        spans.append((between_s - start_s, perf_counter() - between_s))
        model.zero_grad()
    found = torch.tensor([median(some) for some in zip(*spans, strict=True)], dtype=torch.float64)
    comm.all_reduce(found)
    forward_s, backward_s = (found / comm.size).tolist()
    return forward_s, backward_s
