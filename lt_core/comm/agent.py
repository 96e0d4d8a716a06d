"""torchrun, as its own console script calls it, but ready sooner: the process that starts ranks and looks after them.

Until then it has to import torch, which takes most of a start. It computes nothing, so a third of that can wait until
somebody asks for it: what torch knows of tensors without data. And the garbage collector waits until all is imported.
"""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType

LATER = "torch._meta_registrations"


class Later(Loader):
    """Finds that one module, and loads an empty one in its place, which brings it when something of it is wanted."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """That we load it ourselves; nothing of any other one."""
        return ModuleSpec(name, self) if name == LATER else None

    def exec_module(self, module: ModuleType) -> None:
        """Let it be asked."""
        module.__dict__["__getattr__"] = _bring


def _bring(name: str) -> object:
    if name.startswith("__"):  # who looks through all modules asks each for these
        raise AttributeError(name)
    del sys.modules[LATER]
    return getattr(importlib.import_module(LATER), name)


def main(arguments: list[str]) -> None:
    """Be torchrun."""
    gc.disable()
    later = Later()
    sys.meta_path.insert(0, later)
    from torch.distributed.run import main as torchrun

    sys.meta_path.remove(later)
    gc.freeze()
    gc.enable()
    torchrun(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
