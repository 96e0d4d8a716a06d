"""lt_core: how large neural networks are trained, as running code.

A technique says what happens in which order (a `Schedule`, plain data); `simulate` prices it, `execute` runs it on
real ranks, both leave a `Trace`, and a view draws a `Trace`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lt_core.comm.launch import launch, world

__version__ = "0.1.0"
__all__ = ["launch", "world"]


def __getattr__(name: str) -> Any:
    # on first use, so that `import lt_core` costs nothing
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from lt_core import comm

    return getattr(comm, name)
