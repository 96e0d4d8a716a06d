"""Random numbers of a rank's own: a code without bias must err on each rank by itself, or the errors do not average."""

from __future__ import annotations

import torch
from torch import Tensor

from lt_core.base.errors import UserError


class Draws:
    """Uniform numbers in [0, 1) from a generator of this rank; `state` and `load` go on where they were."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._generator: torch.Generator | None = None
        self._state: Tensor | None = None

    def uniform(self, like: Tensor, rank: int) -> Tensor:
        """As many as `like` has elements, of its shape, dtype and device."""
        return torch.rand(like.shape, dtype=like.dtype, device=like.device, generator=self._of(like.device, rank))

    def state(self) -> Tensor | None:
        """Where the generator stands; None before the first draw."""
        return self._generator.get_state() if self._generator is not None else self._state

    def load(self, state: object) -> None:
        """Go on from there. Errors: no such state."""
        if not (state is None or (isinstance(state, Tensor) and state.dtype is torch.uint8)):
            raise UserError("this is no generator's state", type(state).__name__, "what state_dict() gave")
        self._generator, self._state = None, state

    def _of(self, device: torch.device, rank: int) -> torch.Generator:
        if self._generator is None:
            self._generator = torch.Generator(device).manual_seed(1_000_003 * self._seed + rank)
            if self._state is not None:
                self._generator.set_state(self._state.cpu())  # where generators of every device keep it
        return self._generator
