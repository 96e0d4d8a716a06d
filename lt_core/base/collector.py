"""Python's garbage collector, held while millions of records are made: it would walk all of them, again and again.

Nothing in a schedule or a trace refers back to what holds it, so there is nothing for it to find.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """The collector rests inside, and is as it was on every way out. Also a decorator: `@collector_paused()`."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
