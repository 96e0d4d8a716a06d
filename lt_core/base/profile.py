"""What one layer of a model costs, and a model as the chain of its layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Layer(NamedTuple):
    """One layer on one batch: seconds forward and backward, bytes of its output, and bytes it needs besides.

    kept_bytes: all that its backward needs (the output not counted twice); input_kept_bytes: what remains if only the
    input is kept; extra_*: needed while it runs and given back at its end.
    """

    name: str
    forward_s: float
    backward_s: float
    output_bytes: int
    kept_bytes: int = 0
    input_kept_bytes: int = 0
    parameter_bytes: int = 0
    extra_forward_bytes: int = 0
    extra_backward_bytes: int = 0


@dataclass(frozen=True)
class Profile:
    """A chain of layers as measured on `device`: what planners read."""

    layers: tuple[Layer, ...]
    device: str = ""
    input_bytes: int = 0

    def forward_s(self) -> float:
        """Seconds of a whole forward."""
        return sum(layer.forward_s for layer in self.layers)

    def backward_s(self) -> float:
        """Seconds of a whole backward."""
        return sum(layer.backward_s for layer in self.layers)
