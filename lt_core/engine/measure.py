"""What each layer of a model costs on this device, by running it: seconds forward and backward, bytes of its output.

x --[layer 0]--> x1 --[layer 1]--> x2 ...      each layer is run alone, several times, on the output of the one before;
       time             time                   medians count, and the model is left as it was
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from time import perf_counter

import torch
from torch import Tensor, nn

from lt_core.base.errors import UserError
from lt_core.base.profile import Layer, Profile
from lt_core.base.torch_compat import timing_event

WARM_UP = 2  # runs before the first that counts


def measure(model: Iterable[nn.Module], x: Tensor, repeats: int = 9, budget_s: float = 10.0) -> Profile:
    """The profile of a chain of layers on one batch: medians of up to `repeats` runs, on the device where x is.

    model: an nn.Sequential, an nn.ModuleList whose layers follow each other, or any iterable of modules.
    x: what the first layer takes, of any shape and dtype.  budget_s: about how long it may take in all; each layer runs
    at least once. Gradients, buffers, random numbers and modes stay as they are.
    Errors: `UserError` for no layers, for what is no module, for a layer whose output is no tensor.
    """
    layers = _layers(model)
    end_s, made = perf_counter() + budget_s, []
    with torch.inference_mode(False), torch.enable_grad(), _left_as_it_is([layer for _, layer in layers], x):
        given = x.detach().clone()
        for k, (name, layer) in enumerate(layers):
            own_end_s = perf_counter() + (end_s - perf_counter()) / (len(layers) - k)
            times, given = _times(name, layer, given, repeats, own_end_s)
            made.append(_layer(name, layer, times, given))
    return Profile(tuple(made), _device_name(x.device), x.nbytes)


def _layers(model: Iterable[nn.Module]) -> list[tuple[str, nn.Module]]:
    if isinstance(model, nn.Sequential | nn.ModuleList):
        found = list(model._modules.items())  # named_children would leave out a layer that comes twice
    else:
        found = [(str(k), layer) for k, layer in enumerate(model if isinstance(model, Iterable) else ())]
    if not found or not all(isinstance(layer, nn.Module) for _, layer in found):
        names = ", ".join(type(layer).__name__ for _, layer in found) or "no layers"
        raise UserError(f"{type(model).__name__} is no chain of layers", names, "nn.Sequential, or modules in order")
    return [(f"{name} {type(layer).__name__}", layer) for name, layer in found if layer is not None]


def _layer(name: str, layer: nn.Module, times: Sequence[tuple[float, float]], output: Tensor) -> Layer:
    forward_s, backward_s = (median(seconds) for seconds in zip(*times))
    parameter_bytes = sum(p.nbytes for p in layer.parameters())
    return Layer(name, forward_s, backward_s, output.nbytes, parameter_bytes=parameter_bytes)


def _times(
    name: str, layer: nn.Module, x: Tensor, repeats: int, end_s: float
) -> tuple[list[tuple[float, float]], Tensor]:
    """(seconds forward, seconds backward) of each run that counts, and the output."""
    times: list[tuple[float, float]] = []
    for run in range(-WARM_UP, max(repeats, 1)):
        forward_s, backward_s, output = _run(name, layer, x)
        times = [*(times if run > 0 else []), (forward_s, backward_s)]  # a warm-up counts until there is better
        if perf_counter() >= end_s:
            break
    return times, output


def _run(name: str, layer: nn.Module, x: Tensor) -> tuple[float, float, Tensor]:
    leaf = x.detach().requires_grad_(x.is_floating_point() or x.is_complex())
    given = leaf.clone()  # no leaf, so that the layer may work in place
    clock = _Clock(x.device)
    output = layer(given)
    forward_s = clock.read_s()
    if not isinstance(output, Tensor):
        raise UserError(f"layer {name} cannot stand in a chain", type(output).__name__, "one tensor as its output")
    wanted = [t for t in (leaf, *layer.parameters()) if t.requires_grad]
    if not output.requires_grad:
        return forward_s, 0.0, output.detach()
    seed = torch.ones_like(output)
    clock = _Clock(x.device)
    torch.autograd.grad(output, wanted, seed, allow_unused=True)  # returns gradients and leaves `.grad` alone
    return forward_s, clock.read_s(), output.detach()


class _Clock:
    """Seconds since it was made: the host's, or on a GPU those between two events of its stream."""

    def __init__(self, device: torch.device) -> None:
        self.events = [timing_event(), timing_event()] if device.type == "cuda" else []
        if self.events:
            torch.cuda.synchronize(device)
            self.events[0].record()
        self.start_s = perf_counter()

    def read_s(self) -> float:
        """Holds the host until the device has come this far."""
        if not self.events:
            return perf_counter() - self.start_s
        start, end = self.events
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3


@contextmanager
def _left_as_it_is(layers: Sequence[nn.Module], x: Tensor) -> Iterator[None]:
    """Random numbers and the buffers of all layers (BatchNorm's running statistics) are put back on every way out."""
    modules = [m for layer in layers for m in layer.modules()]
    buffers = [(m, name, b, b.detach().clone()) for m in modules for name, b in m._buffers.items() if b is not None]
    with torch.random.fork_rng([x.device] if x.device.type == "cuda" else []):
        try:
            yield
        finally:
            for module, name, buffer, value in buffers:
                module._buffers[name] = buffer  # a layer may have put another tensor in its place
                with torch.no_grad():
                    buffer.copy_(value)


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
